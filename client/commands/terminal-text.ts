import { ownValue, printable } from "@tiltyard/protocol";

/** The smallest width of a column that is cut. */
const widthMin = 8;
const gap = "  ";

/** The values of a row by the names of their columns. */
export type Row = Readonly<Record<string, string | number | undefined>>;

/**
 * Formats rows for a terminal, under the names of their columns.
 *
 * @param width The width of the terminal, to which the widest columns are cut.
 * @param key The column that is never cut, because users pass its values to other commands.
 */
export function formatTable(
  rows: readonly Row[],
  columns: readonly string[],
  width = Number.POSITIVE_INFINITY,
  key?: string,
): string {
  const lines = [
    columns.map((column) => printable(column.toUpperCase(), "")),
    ...rows.map((row) => columns.map((column) => printable(String(ownValue(row, column) ?? ""), ""))),
  ];
  const natural = columns.map((_, index) =>
    lines.reduce((most, line) => Math.max(most, cellsOf(line[index] ?? "")), 0),
  );
  let most = Math.max(0, ...natural);
  const widths = () => natural.map((each, index) => (columns[index] === key ? each : Math.min(each, most)));
  const available = width - gap.length * (columns.length - 1);
  while (most > widthMin && widths().reduce((sum, each) => sum + each, 0) > available) most -= 1;
  const final = widths();
  const text = lines.map((line) =>
    line
      .map((cell, index) => fitted(cell, final[index] ?? 0))
      .join(gap)
      .trimEnd(),
  );
  return text.join("\n");
}

const ascii = /^[\x20-\x7e]*$/;
/** Matches the characters that terminals draw in two cells. */
const wide =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Emoji_Presentation}\u3000-\u303e\uff01-\uff60\uffe0-\uffe6]/u;
const graphemes = new Intl.Segmenter();

/** Returns the number of a terminal's cells that a text occupies. */
function cellsOf(text: string): number {
  if (ascii.test(text)) return text.length;
  return [...graphemes.segment(text)].reduce((sum, { segment }) => sum + (wide.test(segment) ? 2 : 1), 0);
}

/** Cuts or pads a text to a width. */
function fitted(text: string, width: number): string {
  const missing = width - cellsOf(text);
  if (missing >= 0) return text + " ".repeat(missing);
  let cut = "";
  for (const { segment } of graphemes.segment(text)) {
    if (cellsOf(cut + segment) >= width) break;
    cut += segment;
  }
  return fitted(`${cut}…`, width);
}
