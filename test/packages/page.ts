import { readFileSync } from "node:fs";
import { join } from "node:path";

/** What a section of a page has a reader do. */
export interface Path {
  /** By their names, which stand behind the language of a block. */
  readonly files: Readonly<Record<string, string>>;
  /** The commands of the blocks of sh, one after the other. A block of console is shown, and not run. */
  readonly commands: string;
}

/** A section of docs/get-started/packages.md by the beginning of its title. */
export function readPath(title: string): Path {
  const page = readFileSync(join(import.meta.dirname, "../../docs/get-started/packages.md"), "utf8");
  const section = page.split(/^## /m).find((each) => each.startsWith(title));
  if (section === undefined) throw new Error(`docs/get-started/packages.md has no section ${title}`);
  const blocks = [...section.matchAll(/^```(\w+)(?: (\S+))?\n(.*?)^```$/gms)];
  return {
    files: Object.fromEntries(blocks.flatMap(([, , name, text = ""]) => (name === undefined ? [] : [[name, text]]))),
    commands: blocks.flatMap(([, language, , text = ""]) => (language === "sh" ? [text] : [])).join("\n"),
  };
}
