import type { JsonArrowSchema } from "@tiltyard/protocol";
import { quotedName } from "./sql-text.ts";

type Field = JsonArrowSchema["fields"][number];

/** One name of a path. Backticks enclose names with dots; a backtick in such a name is doubled. */
const segment = /(?:`((?:[^`]|``)+)`|([^.`]+))(\.|$)/y;

/** Finds a field by a path such as `s.k` or `` s.`x.y` ``, like Lance: by its exact name or else in any case. */
export function findField(fields: readonly Field[], path: string) {
  let found: Field | undefined;
  let inner: readonly Field[] = fields;
  const names: string[] = [];
  for (const name of namesOf(path)) {
    const folded = fold(name);
    found = inner.find((each) => each.name === name) ?? inner.find((each) => fold(each.name) === folded);
    if (found === undefined) return undefined;
    names.push(found.name);
    inner = found.type.type === "struct" ? (found.type.fields ?? []) : [];
  }
  return found && { field: found, names };
}

/** Returns the path that Lance lists for a field: only names with dots or backticks are in backticks. */
export function pathOf(names: readonly string[]): string {
  return names.map((name) => (/[.`]/.test(name) ? quotedName(name) : name)).join(".");
}

/** Returns a path as an SQL expression, in which names with spaces or in capitals need backticks. */
export function quotedPath(path: string): string {
  return namesOf(path).map(quotedName).join(".");
}

/** Splits a path; a path that Lance cannot split has no names. */
export function namesOf(path: string): readonly string[] {
  const names = [];
  segment.lastIndex = 0;
  for (let end = "."; end === "."; ) {
    const [, quoted, plain = "", separator = ""] = segment.exec(path) ?? [];
    if (quoted === undefined && plain === "") return [];
    names.push(quoted?.replaceAll("``", "`") ?? plain);
    end = separator;
  }
  return names;
}

/** Folds the case of a name, because Lance finds names in any letter case. */
export function fold(name: string): string {
  return name.toLowerCase();
}
