import { CatalogError, formatIdentifier, parseIdentifier } from "@tiltyard/protocol";
import { describe, expect, test } from "vitest";

describe("an identifier", () => {
  test.each([
    ["$", undefined, []],
    ["a", undefined, ["a"]],
    ["a$b$c", undefined, ["a", "b", "c"]],
    [".", ".", []],
    ["a.b", ".", ["a", "b"]],
    ["a.b", undefined, ["a.b"]],
    ["a$b", ".", ["a$b"]],
    ["a::b", "::", ["a", "b"]],
    ["__proto__$constructor", undefined, ["__proto__", "constructor"]],
    ["\u{1f600}".repeat(256), "\u{1f601}".repeat(16), ["\u{1f600}".repeat(256)]],
    ["caf\u00e9$cafe\u0301", undefined, ["caf\u00e9", "cafe\u0301"]],
  ])("%j with the delimiter %j is read, and written back as it was", (text, delimiter, parts) => {
    expect(parseIdentifier(text, delimiter)).toEqual(parts);
    expect(formatIdentifier(parts, delimiter)).toBe(text);
  });

  test.each([
    ["", undefined],
    ["$$", undefined],
    ["a$", undefined],
    ["$a", undefined],
    ["a$$b", undefined],
    [".", undefined],
    ["a$..", undefined],
    ["..", "."],
    ["a\u0000b", undefined],
    ["a\u001fb", undefined],
    ["a\ud800", undefined],
    ["x".repeat(257), undefined],
    [Array(33).fill("a").join("$"), undefined],
    ["a", ""],
    ["a", "\n"],
    ["a", "$".repeat(17)],
    ["a", "\u{1f600}".repeat(17)],
    ["\u{1f600}".repeat(257), undefined],
  ])("%j with the delimiter %j is refused", (text, delimiter) => {
    expect(() => parseIdentifier(text, delimiter)).toThrow(CatalogError);
  });
});
