/**
 * Extracts the prose of a file as Markdown. Markdown stays as it is. In source files each comment becomes a paragraph.
 */
export interface Prose {
  readonly text: string;
  /** The line of the file, from 1, for each line of the text. */
  readonly sourceLines: readonly number[];
}

const slashes = /^[ \t]*\/\*\*?(?<block>[\s\S]*?)\*\/|(?:^[ \t]*|[;,{}\])][ \t]+)\/\/ (?<line>.*)$/gm;
const hashes = /^[ \t]*[rf]?"""(?<block>[\s\S]*?)"""|(?:^[ \t]*|[ \t]{2})# (?<line>.*)$/gm;
/** A tag of a comment, with its type and the name that it describes. */
const tags = /^@(?:typedef.*|\w+(?: \{.*\})?(?: [\w.[\]]+)?)/;
/** Instructions for tools, which are no prose. */
const instructions = /^(?:@ts-|biome-ignore|eslint|noqa|type:|pragma|#|!|(?:\/\/)?\s*---)/;

export function proseOf(path: string, source: string): Prose {
  if (path.endsWith(".md")) return { text: source, sourceLines: source.split("\n").map((_line, index) => index + 1) };
  const pattern = /\.[tj]sx?$/.test(path) ? slashes : hashes;
  const text: string[] = [];
  const sourceLines: number[] = [];
  let previousLine = 0;
  for (const match of source.matchAll(pattern)) {
    const { block, line } = match.groups ?? {};
    const comment = block ?? line ?? "";
    if (instructions.test(comment.trim())) continue;
    const start = lineAt(source, match.index + match[0].indexOf(comment));
    // Consecutive comments of a line each are one paragraph, if they start their lines.
    const continues = line !== undefined && start === previousLine + 1 && /^[ \t]*(?:\/\/|#)/.test(match[0]);
    if (!continues) push("", start);
    for (const [index, commentLine] of comment.split("\n").entries()) {
      const prose = commentLine.replace(/^\s*(?:\* ?)?/, "");
      if (prose.startsWith("@")) push("", start + index);
      push(prose.replace(tags, ""), start + index);
    }
    previousLine = sourceLines.at(-1) ?? 0;
  }
  return { text: text.join("\n").trim() === "" ? "" : text.join("\n"), sourceLines };

  function push(textLine: string, sourceLine: number): void {
    text.push(textLine);
    sourceLines.push(sourceLine);
  }
}

function lineAt(source: string, index: number): number {
  return source.slice(0, index).split("\n").length;
}
