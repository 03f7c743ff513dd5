import { existsSync, readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";

const rows = readFileSync("docs/internals/requirements.md", "utf8")
  .split("\n")
  .filter((line) => /^\| \d/.test(line))
  .map((line) => line.split("|").map((cell) => cell.trim()));

describe("the table of requirements", () => {
  test("has those of the parts 2.5, 2.7, 2.8, 5.1, 8 and 9", () => {
    const parts = new Set(rows.map(([, requirement = ""]) => requirement.split(" ")[0]));
    expect(parts).toEqual(new Set(["2.5", "2.7", "2.8", "5.1", "8", "9"]));
  });

  test.each(rows)("%s%s names what is there", (_, _requirement, metIn = "", provenBy = "") => {
    const [, file] = /`([^`]+\.(?:ts|md))`/.exec(metIn) ?? [];
    if (file !== undefined) expect(existsSync(file)).toBe(true);
    const [, testFile, words = ""] = /^`([^`]+\.test\.ts)`: (.+)$/.exec(provenBy) ?? [];
    if (testFile !== undefined) expect(readFileSync(testFile, "utf8")).toContain(words);
  });
});
