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
    const source = 'def rows():\n    """What the table has."""\n    return 1  # It comes first.\n';
    expect(await problemsOf("job/a.py", source)).toEqual([
      expect.stringMatching(/^job\/a\.py:2: "What"/),
      expect.stringMatching(/^job\/a\.py:3: "comes"/),
    ]);
  });

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
