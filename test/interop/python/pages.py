"""The pages of docs/clients: the programs of their examples, and the table of clients."""

import re
from pathlib import Path

from catalog import PROJECT

PAGES = PROJECT / "docs/clients"
TABLE = PAGES / "operations.md"


def examples(page: Path) -> dict[str, str]:
    """Returns the examples of a page by language in order. Those of one language are one program."""
    programs: dict[str, str] = {}
    for language, text in re.findall(r"^```(\w+)\n(.*?)^```$", page.read_text(), re.DOTALL | re.MULTILINE):
        programs[language] = programs.get(language, "") + text
    return programs


def line_of(client: str) -> str | None:
    """Returns the line of a client in the table, if it has one."""
    found = re.search(rf"^\| {re.escape(client)} \|.*$", TABLE.read_text(), re.MULTILINE)
    return found[0] if found else None


def write_line(client: str, line: str) -> None:
    """Replaces the line of a client in the table, or appends it."""
    page, old = TABLE.read_text(), line_of(client)
    TABLE.write_text(page.replace(old, line) if old else f"{page}{line}\n")


def read_section(title: str) -> tuple[list[str], list[str]]:
    """Returns the lines of a section of differences without their owners, and the owners."""
    lines = section_of(title).strip().splitlines()
    split = [(line, "") if i < 4 else tuple(line.removesuffix(" |").rsplit(" | ", 1)) for i, line in enumerate(lines)]
    return [line if i < 4 else f"{line} |" for i, (line, _) in enumerate(split)], [owner for _, owner in split[4:]]


def write_section(title: str, lines: list[str]) -> None:
    """Replaces a section of differences, but keeps the owners of its rows."""
    listed, owners = read_section(title)
    kept = dict(zip((line.split(" | ", 1)[0] for line in listed[4:]), owners))
    rows = [f"{line} {kept.get(line.split(' | ', 1)[0], '')} |" for line in lines[4:]]
    begin, old = f"### {title}\n", section_of(title)
    new = "\n".join([begin, *lines[:4], *rows, ""])
    TABLE.write_text(TABLE.read_text().replace(begin + old, f"{new}\n").rstrip() + "\n")


def section_of(title: str) -> str:
    found = re.search(rf"^### {title}\n(.*?)(?=^#|\Z)", TABLE.read_text(), re.DOTALL | re.MULTILINE)
    assert found, f"the page has no section {title}"
    return found[1]
