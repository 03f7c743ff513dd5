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
