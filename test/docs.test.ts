import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { dirname, join, normalize } from "node:path";
import type { Command } from "commander";
import { describe, expect, test } from "vitest";
import { tiltyard } from "../client/command-line.ts";
import { CatalogOnExisting, CatalogOnGke } from "../infra/settings/catalog-settings.ts";
import { Runner } from "../infra/settings/runner-settings.ts";
import { settingsOfVariant } from "../infra/settings/settings.ts";
import { bodies, characters, entries, items } from "../protocol/bounds.ts";
import { documentationTitles, managementContracts } from "../protocol/index.ts";
import { shown } from "../protocol/management/row.ts";
import { sqlBounds } from "../protocol/sql.ts";
import { blocksOf } from "./docs/blocks.ts";

const files = execFileSync("git", ["ls-files", "--cached", "--others", "--exclude-standard"], { encoding: "utf8" })
  .split("\n")
  .filter((path) => existsSync(path) && /\.(md|tsx?|js|py|ya?ml|json)$/.test(path));
const texts = new Map(files.map((path) => [path, readFileSync(path, "utf8")]));
const documents = files.filter((path) => path.endsWith(".md"));
const pages = documents.filter((path) => path.startsWith("docs/"));

const textOf = (path: string) => texts.get(path) ?? "";
const proseOf = (path: string) => textOf(path).replace(/^( *)```.*?^\1```$/gms, "");

/** Returns the anchors of a page, which GitHub derives from its headings. */
function anchorsOf(path: string): string[] {
  const headings = [...proseOf(path).matchAll(/^#+ (.*)$/gm)].map(([, title = ""]) => title.toLowerCase());
  return headings.map((title) => title.replace(/[^\p{L}\p{N}_ -]/gu, "").replaceAll(" ", "-"));
}

/** Returns the links of a page to files of the project, each as a path and an anchor. */
function linksOf(path: string): { link: string; target: string; anchor: string }[] {
  const links = [...proseOf(path).matchAll(/\]\(([^)\s]+)\)/g)].map(([, link = ""]) => link);
  return links.flatMap((link) => {
    if (/^[a-z]+:/.test(link)) return [];
    const [file = "", anchor = ""] = link.split("#");
    return [{ link, target: file === "" ? path : normalize(join(dirname(path), file)), anchor }];
  });
}

test.each(documents)("the links of %s lead to something", (path) => {
  const broken = linksOf(path).filter(
    ({ target, anchor }) => !existsSync(target) || (anchor !== "" && !anchorsOf(target).includes(anchor)),
  );
  expect(broken.map(({ link }) => link)).toEqual([]);
});

test("the README shows how to try and how to test a clone, and CI runs the same commands", () => {
  const commands = blocksOf(textOf("README.md")).filter(({ language }) => language === "sh");
  expect(commands.map(({ text }) => text)).toEqual(["npm ci && npm run quickstart\n", "npm test\n"]);
  expect(textOf("README.md").split("\n").indexOf("npm ci && npm run quickstart")).toBeLessThan(12);
  const blocks = readFileSync(".ci/run", "utf8").matchAll(/\$\(block sh (\d)\)/g);
  expect([...blocks].map(([, number]) => number)).toEqual(["1", "2"]);
});

test("tests run the sh blocks of all pages, whose other commands are console blocks", () => {
  const tests = files.filter((path) => /^test\/\w+\/.*\.(py|ts)$/.test(path)).map(textOf);
  const isRun = (path: string) =>
    path.startsWith("docs/clients/") || tests.some((text) => text.includes(path.replace(/^docs\//, "")));
  const withCommands = pages.filter((path) => blocksOf(textOf(path)).some(({ language }) => language === "sh"));
  expect(withCommands.filter((path) => !isRun(path))).toEqual([]);
  expect(pages.filter((path) => /^ *```(bash|shell)/m.test(textOf(path)))).toEqual([]);
});

test("no text runs the command through npx, which outside of a clone installs a package of that name", () => {
  const suggests = /npx(\s|\\n)+(--?\S+\s+)*@?tiltyard/;
  expect(files.filter((path) => suggests.test(textOf(path)))).toEqual([]);
});

test("pages that code, messages and examples name exist", () => {
  const mentions = files.flatMap((path) => [...textOf(path).matchAll(/\bdocs\/[\w/-]+\.md\b/g)].map(([page]) => page));
  expect(mentions.length).toBeGreaterThan(20);
  expect(mentions.filter((page) => !existsSync(page))).toEqual([]);
});

test.each(pages)("%s cites tests by words of their titles", (path) => {
  const citations = textOf(path)
    .replaceAll(/\s+/g, " ")
    .matchAll(/`([\w./-]+\.(?:test\.ts|py))`([^|`]*)/g);
  const cited = [...citations].flatMap(([, file = "", text = ""]) => titlesIn(text).map((title) => ({ file, title })));
  /** An ellipsis replaces the words that differ between cases. */
  const isTitle = ({ file, title }: { file: string; title: string }) =>
    files.some(
      (each) =>
        `/${each}`.endsWith(`/${file}`) && title.split("...").every((part) => textOf(each).includes(part.trim())),
    );
  expect(cited.filter((each) => !isTitle(each))).toEqual([]);
});

const titlesIn = (text: string) => [...text.matchAll(/"([^"]+)"/g)].map(([, title = ""]) => title);

test.each(pages)("%s begins with the readers that it is for", (path) => {
  expect(textOf(path)).toMatch(/^# .+\n\nThis page /);
});

test("the index leads to every page", () => {
  const reached = new Set(
    ["docs/README.md", "docs/clients/README.md"].flatMap((path) => linksOf(path).map(({ target }) => target)),
  );
  expect(pages.filter((path) => path !== "docs/README.md" && !reached.has(path))).toEqual([]);
});

test("the reference of management has a row for each operation", () => {
  const rows = [...textOf("docs/reference/management.md").matchAll(/^\| (`(?:GET|POST) .*?`(?:, `\w+`)*) \|/gm)];
  const documented = new Set(
    rows.flatMap(([, cell = ""]) => {
      const [first = "", ...others] = [...cell.matchAll(/`([^`]+)`/g)].map(([, text = ""]) =>
        text.replace(/^\w+ /, ""),
      );
      return [first, ...others.map((last) => first.replace(/\w+$/, last))];
    }),
  );
  const paths = Object.values(managementContracts).map(({ path }) => path);
  const missing = paths.filter((path) => !documented.has(path));
  expect(missing, "add them to docs/reference/management.md").toEqual([]);
});

test("the reference of the command line has each command in a row, and no other", () => {
  const cells = [...textOf("docs/reference/cli.md").matchAll(/^\| (`tiltyard .*?) \|/gm)].map(([, cell = ""]) => cell);
  const documented = cells.flatMap((cell) =>
    cell.split("; ").flatMap((part) => {
      const [first = "", ...others] = [...part.matchAll(/`([^`]+)`/g)].map(([, text = ""]) => wordsOf(text));
      return [first, ...others.map((last) => first.replace(/\S+$/, last))];
    }),
  );
  const commands = leavesOf(tiltyard());
  expect(commands.length).toBeGreaterThan(50);
  expect([...new Set(documented)].toSorted()).toEqual(commands.toSorted());
});

/** Returns the words of a command without its options and arguments. */
const wordsOf = (text: string) => /^[a-z-]+(?: [a-z-]+)*?(?= -|$| [A-Z])/.exec(text)?.[0] ?? text;

/** Returns the full names of the commands without subcommands. */
function leavesOf(command: Command, parents: readonly string[] = []): readonly string[] {
  const name = [...parents, command.name()];
  const children = command.commands.filter((each) => each.name() !== "help");
  return children.length === 0 ? [name.join(" ")] : children.flatMap((child) => leavesOf(child, name));
}

describe("the page of settings", () => {
  /** Returns the subjects of the rows of a page's tables, which are the names in their first cells. */
  const rowsOf = (path: string) => {
    const cells = [...textOf(path).matchAll(/^\| (.*?) \|/gm)].map(([, cell = ""]) => cell);
    return new Set(cells.flatMap((cell) => [...cell.matchAll(/`(\w+)`/g)].map(([, name = ""]) => name)));
  };

  test("lists each variable of the catalog, and no other", () => {
    const variables = [...textOf("service/config.ts").matchAll(/^ {2}(TILTYARD_\w+):/gm)].map(([, name = ""]) => name);
    expect(variables.length).toBeGreaterThan(20);
    const rows = [...rowsOf("docs/reference/settings.md")].filter((name) => name.startsWith("TILTYARD_"));
    expect(rows.sort()).toEqual(variables.sort());
  });

  test("states the bounds of the schemas", () => {
    const count = (number: number) => number.toLocaleString("en");
    const bodyText = ({ bytes, values, keys, depth }: (typeof bodies)[keyof typeof bodies]) =>
      `${bytes < 1024 ** 2 ? `${bytes / 1024} KiB` : `${bytes / 1024 ** 2} MiB`}, ${count(values)} values, ${count(keys)} keys, ${depth} levels`;
    const stated = [
      ...Object.values(bodies).map(bodyText),
      `operations of a batch ${count(items.batch)}`,
      `columns ${count(items.columns)}; outputs of a function ${count(items.outputs)}`,
      `dimensions of a vector ${count(items.dimensions)}; vectors of a query ${count(items.vectors)}`,
      `clauses at each level of a full-text query ${count(items.clauses)}`,
      `properties ${count(entries.properties)}`,
      `names ${count(characters.name)} characters, paths ${count(characters.path)}`,
      `all properties together ${count(characters.text)}, documents ${count(characters.document)}`,
      `${count(sqlBounds.tokens)} tokens, ${count(sqlBounds.operators)} operators and calls, ${sqlBounds.chain} operators`,
    ];
    expect(stated.filter((text) => !textOf("docs/reference/settings.md").includes(text))).toEqual([]);
    const ofRows = [
      `of up to ${shown.imageBytes / 1024} KiB`,
      `| ${shown.answerBytes / 1024} KiB`,
      `${shown.rows} at most`,
    ];
    expect(ofRows.filter((text) => !textOf("docs/reference/management.md").includes(text))).toEqual([]);
  });

  test("lists each setting of a stack, of its catalog and of its runner", () => {
    const shapes = [...Object.values(settingsOfVariant), CatalogOnGke.shape, CatalogOnExisting.shape, Runner.shape];
    const rows = rowsOf("docs/reference/stack.md");
    expect(shapes.flatMap((shape) => Object.keys(shape)).filter((name) => !rows.has(name))).toEqual([]);
  });
});

test("each page that help texts and errors name has that title", () => {
  const titles = new Set(pages.map((path) => textOf(path).match(/^# (.*)$/m)?.[1]));
  expect(Object.values(documentationTitles).filter((title) => !titles.has(title))).toEqual([]);
});

test("no help text or error names a file of docs/, which installed packages do not contain", () => {
  const programs = files.filter((path) =>
    /^(client|console|infra|lance-worker|platform|protocol|runner|service)\/.*\.tsx?$/.test(path),
  );
  const named = programs.flatMap((path) => {
    const code = textOf(path).replace(/\/\*[\s\S]*?\*\/|^\s*\/\/.*$/gm, "");
    return [...code.matchAll(/docs\/[\w/-]+\.md/g)].map(([file]) => `${path}: ${file}`);
  });
  expect(named).toEqual([]);
});
