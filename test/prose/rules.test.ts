import { describe, expect, test } from "vitest";
import { problemsOf } from "./rules.ts";

describe("the prose linter", () => {
  test("reports rejected words of comments with their lines", async () => {
    const source = [
      "/**",
      " * Returns the rows.",
      " * It tells their number.",
      " */",
      'const text = "what it tells"; // The text goes to the log.',
    ].join("\n");
    expect(await problemsOf("service/a.ts", source)).toEqual([
      expect.stringMatching(/^service\/a\.ts:3: "tells"/),
      expect.stringMatching(/^service\/a\.ts:5: "goes"/),
    ]);
  });

  test("reports comments and docstrings of Python", async () => {
    const source = 'def rows():\n    """What the table has."""\n    return 1  # It comes later.\n';
    expect(await problemsOf("job/a.py", source)).toEqual([
      expect.stringMatching(/^job\/a\.py:2: "What"/),
      expect.stringMatching(/^job\/a\.py:3: "comes"/),
    ]);
  });

  test("reports fragments and rejected words in titles of tests", async () => {
    const source = [
      'describe("a token", () => {',
      '  test("of development is worth nothing", () => {});',
      '  test.each([[1]])("is 404 for a table that is not there: %i", () => {});',
      '  test("is rejected", () => {});',
      "});",
    ].join("\n");
    expect(await problemsOf("test/a.test.ts", source)).toEqual([
      expect.stringMatching(/^test\/a\.test\.ts:2: "of"/),
      expect.stringMatching(/^test\/a\.test\.ts:3: "is not there"/),
    ]);
  });

  test("reports rejected words in messages of errors and in texts of the console", async () => {
    const source = `throw new Error(\`There is no table \${name}\`, { cause });\nconst told = "a name";\n`;
    expect(await problemsOf("service/a.ts", source)).toEqual([expect.stringMatching(/^service\/a\.ts:1: "There is"/)]);
    const page = "export const Page = () => (\n  <p>\n    What runs of it stops within seconds.\n  </p>\n);\n";
    expect(await problemsOf("console/a.tsx", page)).toEqual([expect.stringMatching(/^console\/a\.tsx:\d: "What"/)]);
  });

  test.each(["The cursor comes from the response.", "This makes sure that it ends.", "There is one lease."])(
    "accepts the idiom %s",
    async (sentence) => {
      expect(await problemsOf("a.md", sentence)).toEqual([]);
    },
  );

  test.each(["Where it runs is open.", "Of a table it keeps one.", `It ${"and it ".repeat(40)}ends.`])(
    "rejects the sentence %#",
    async (sentence) => {
      expect(await problemsOf("a.md", `# Title\n\nIt runs. ${sentence}\n`)).toHaveLength(1);
    },
  );

  test.each([
    "What is a table?",
    "It takes about a minute.",
    "The command `tell` runs.",
    "[Tables](what-it-takes.md)",
    "```sh\nmake it\n```",
  ])("accepts %s", async (text) => {
    expect(await problemsOf("a.md", text)).toEqual([]);
  });
});
