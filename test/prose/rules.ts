/** The rules of the project's prose, for textlint. */
import { TextlintKernel } from "@textlint/kernel";
import { MarkdownProcessor } from "@textlint/textlint-plugin-markdown/lib/src/MarkdownProcessor.js";
import type { TextlintRuleModule } from "@textlint/types";
import { proseOf } from "./comments.ts";
import { textsOf } from "./texts.ts";

const sentenceCharsMax = 260;

type Rule = readonly [pattern: RegExp, advice: string];

/** Rejected words and constructions of all texts, each with its replacement. */
const everywhere: readonly Rule[] = [
  [/\b(?:of|for|by|with|to|from) what\b/i, "name the thing"],
  [/\b(?:tells?|told|telling)\b/i, "reports, returns, shows, determines, distinguishes"],
  [
    /\b(?:tak(?:es?|ing)|took)\b(?! (?:about|some|several|more than|up to|at most|a (?:few|minute|second)|longer|\d|place|effect|precedence|care|over|part|turns))/i,
    "accepts, reads, requires, lasts, uses",
  ],
  [/(?<!\b(?:is|are|already) )\btaken\b/i, "accepted, read, used"],
  [/\b(?:makes?|making|made)\b(?! (?:sure|sense|up|of)\b)/i, "creates, builds, sends, causes"],
  [/\b(?:gives?|giving|gave|given (?:to|by|up|out|away))\b/i, "returns, passes, grants, provides"],
  [/\b(?:go|goes|going|went|gone)\b(?! (?:through|past)\b)/, "moves, is sent, is removed, continues"],
  [/\b(?:comes?|coming|came)\b(?! (?:from|with|first|last|before|after)\b)/i, "arrives, follows, is delivered"],
  [/\bbesides?\b(?! (?:it|them)\b)/i, "in addition to, next to, also"],
  [/\b(?:whoever|whom)\b/i, "the caller, the client, the principal, its holder"],
  [/\b(?:no|some|any|every)body\b/i, "no client, another client, another process, any principal"],
  [/\b(?:some|any|every|no )one else\b/i, "no other client, another client"],
  [/\b(?:some|any|every)one\b/i, "a client, any principal, all clients"],
  [/(?<!\b(?:users?|people|person|engineers?|operators?) )\bwho\b/i, "the principal that, clients that, its owner"],
  [/\b(?:comes? to grief|befalls?|tr(?:y|ies|ied) anew)\b/i, "fails, happens to, retries"],
];
const ofSentences: readonly Rule[] = [
  [
    /^(?:What|Of(?! (?:the|these|all|several|columns)\b)|How|Where|Whether|Who)\b(?!.*\?\s*$)/,
    "start with the subject",
  ],
  ...everywhere,
];
const ofMessages: readonly Rule[] = [
  [/^(?:What|How|Where|Whether)\b(?!.*\?\s*$)/, "start with the subject"],
  [/\bthere (?:is|are|was|were)\b/i, "has, contains, exists"],
  ...everywhere,
];
const ofTitles: readonly Rule[] = [
  [
    /^(?:what|how|where|whether|of|that|to|for|in|with|by|from|on|at|as|and|or|but|before|after|while|until|because|who|whose)\b/i,
    'complete "it ...", or start with the subject',
  ],
  [/\b(?:is|are|was|were) (?:not )?there\b/i, "exists, does not exist, an existing ..."],
  ...ofMessages,
];
const segmenter = new Intl.Segmenter("en", { granularity: "sentence" });
/** Code, link targets and tags, which are no words. */
const notProse = /`[^`]*`|\]\([^)]*\)|<[^>]*>/g;

const sentences: TextlintRuleModule = ({ Syntax, RuleError, report, getSource, locator }) => {
  const check = (node: Parameters<typeof getSource>[0] & object) => {
    // Letters keep the positions. A segmenter ends a sentence at the end of a line, too.
    const text = getSource(node)
      .replaceAll(notProse, (code) => "X".repeat(code.length))
      .replaceAll("\n", " ");
    for (const { segment, index } of segmenter.segment(text)) {
      const complain = (offset: number, message: string) =>
        report(node, new RuleError(message, { padding: locator.at(index + offset) }));
      if (node.type === Syntax.Paragraph && segment.length > sentenceCharsMax)
        complain(0, `a sentence of ${segment.length} characters; ${sentenceCharsMax} at most`);
      for (const [pattern, advice] of ofSentences) {
        const found = pattern.exec(segment);
        if (found !== null) complain(found.index, `"${found[0]}": write ${advice}`);
      }
    }
  };
  return { [Syntax.Paragraph]: check, [Syntax.TableCell]: check, [Syntax.Header]: check };
};

const kernel = new TextlintKernel();
const options = {
  ext: ".md",
  plugins: [{ pluginId: "markdown", plugin: { Processor: MarkdownProcessor } }],
  rules: [{ ruleId: "sentences", rule: sentences }],
};

/** Checks the prose of a file. @returns Each problem with the path and the line. */
export async function problemsOf(path: string, source: string): Promise<readonly string[]> {
  return [...(await problemsOfProse(path, source)), ...problemsOfTexts(path, source)];
}

async function problemsOfProse(path: string, source: string): Promise<readonly string[]> {
  const { text, sourceLines } = proseOf(path, source);
  if (text === "") return [];
  const { messages } = await kernel.lintText(text, { ...options, filePath: path });
  return messages.map(({ message, loc }) => `${path}:${sourceLines[loc.start.line - 1]}: ${message}`);
}

function problemsOfTexts(path: string, source: string): readonly string[] {
  if (!/\.tsx?$/.test(path)) return [];
  return textsOf(path, source).flatMap(({ kind, text, line }) => {
    const prose = text.replaceAll(notProse, "X");
    return (kind === "title" ? ofTitles : ofMessages).flatMap(([pattern, advice]) => {
      const found = pattern.exec(prose);
      return found === null ? [] : [`${path}:${line}: "${found[0]}": write ${advice}`];
    });
  });
}
