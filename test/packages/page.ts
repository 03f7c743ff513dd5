import { readFileSync } from "node:fs";
import { join } from "node:path";

/** The instructions of a section of a page. */
export interface Path {
  /** The files by name. The name follows the language of a block. */
  readonly files: Readonly<Record<string, string>>;
  /** The commands of the sh blocks in order. A console block is only shown. */
  readonly commands: string;
}

/** Returns a section of docs/get-started/packages.md by the beginning of its title. */
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
