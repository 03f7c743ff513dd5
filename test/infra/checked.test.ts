import { existsSync, readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";

/** The cells of the tables that have a test in their third column. */
const rows = readFileSync("docs/internals/clouds.md", "utf8")
  .split("\n")
  .filter((line) => line.startsWith("| ") && line.split("|").length === 6 && !/^\| (what|---)/.test(line))
  .map((line) => line.split("|").map((cell) => cell.trim()));

describe("the table of what the clouds are known to do", () => {
  test.each(rows)("%s%s has a test that is there", (_, _what, _source, held = "") => {
    const named = [...held.matchAll(/`([\w/-]+\.(?:test\.)?ts)`(?:: ([^;`]+))?/g)];
    for (const [, file = "", words = ""] of named) {
      const path = [file, `test/infra/${file}`, `test/client/${file}`].find((each) => existsSync(each)) ?? "";
      expect(path).not.toBe("");
      expect(readFileSync(path, "utf8")).toContain(words.trim());
    }
    expect(named.length > 0 || held === "the same").toBe(true);
  });
});
