import { ownValue } from "./own-value.ts";
/**
 * The bounds on SQL expressions, which are checked before Lance parses one. Lance parses and plans recursively and
 * reserves memory for the results of functions such as `repeat` without a limit. docs/internals/rows.md contains the
 * measurements.
 */
export const sqlBounds = {
  /** The words, numbers, strings, signs and white space: an IN list of 20,000 values has 60,000. */
  tokens: 65_536,
  /** The operators and function calls of an expression. */
  operators: 4_096,
  /**
   * The operators of one chain, such as `a + b + c`. AND, OR and commas end a chain, because Lance plans them without
   * recursion.
   */
  chain: 128,
  /** The nesting of parentheses, brackets and CASE. */
  depth: 32,
  /** The factor by which nested functions may lengthen a value. */
  growth: 65_536,
  /** The length of one argument of a function whose cost is the product of the lengths of its arguments, and of a pattern. */
  factor: 256,
} as const;

/**
 * Matches one token: a number, a word, a string or quoted name, white space, a comment, or an operator. Letters and white
 * space are those of Rust, in which Lance's tokenizer is written.
 */
const tokens = new RegExp(
  [
    /\d[\d_]*(?:\.\d*)?(?:[eE][+-]?\d+)?/,
    /[\p{Alphabetic}_@#][\p{Alphabetic}\d_$@#]*/u,
    /'(?:[^']|'')*(?:'|$)/,
    /"(?:[^"]|"")*(?:"|$)/,
    /`(?:[^`]|``)*(?:`|$)/,
    /\$(\w*)\$[\s\S]*?(?:\$\1\$|$)/,
    /\p{White_Space}+|--[^\n]*|\/\*[\s\S]*?(?:\*\/|$)/u,
    /::|\|\||[<>=!]*~+\*?|[<>=!]+/,
    /[\s\S]/,
  ]
    .map(({ source }) => source)
    .join("|"),
  "uy",
);

const connectives = new Set(["and", "or", "when", "then", "else"]);
const operatorWords = new Set([
  ...["not", "is", "in", "like", "ilike", "similar", "rlike", "regexp", "between", "div", "xor", "escape", "as"],
]);

/** The operators before a pattern, whose cost is the product of the lengths of the text and of the pattern. */
const patternWords = new Set(["like", "ilike", "similar", "rlike", "regexp"]);

/** The functions with a length as a numeric argument, and the index of that argument; -1 for every argument. */
const lengths: Readonly<Record<string, number>> = {
  ...{ repeat: 1, lpad: 1, rpad: 1, space: 0 },
  ...{ array_repeat: 1, list_repeat: 1, array_resize: 1, list_resize: 1 },
  ...{ range: -1, generate_series: -1, sequence: -1 },
};
/** The functions that may replace each character by their third argument. */
const replacing = ["replace", "regexp_replace"];

/**
 * The functions whose cost is the product of the lengths of their arguments, and the arguments of which one must be
 * short. docs/internals/rows.md has the measurements of all functions.
 */
const products: Readonly<Record<string, readonly number[]>> = {
  ...{ levenshtein: [0, 1], strpos: [1], instr: [1], contains_tokens: [1] },
  ...{ trim: [1], btrim: [1], ltrim: [1], rtrim: [1] },
  ...{ array_has_all: [0, 1], list_has_all: [0, 1] },
  ...{ array_has_any: [0, 1], list_has_any: [0, 1], arrays_overlap: [0, 1] },
  ...{ array_to_string: [0, 1], array_join: [0, 1], list_join: [0, 1], list_to_string: [0, 1] },
  ...{ regexp_like: [0, 1], regexp_match: [0, 1], regexp_count: [0, 1], regexp_instr: [0, 1], regexp_replace: [0, 1] },
};
/** The functions with a path in JSON as their second argument. Each `**` of a path examines all levels again. */
const jsonPaths = ["json_extract", "json_exists", "json_array_contains", "json_array_length"];
/** The functions that apply a regular expression again after each match. */
const repeated = ["regexp_count", "regexp_instr", "regexp_replace"];
/** Matches a text that is a regular expression with an unbounded repetition at its end only, so that each match is cheap. */
const cheapPattern = /^'(?:[^*+{|()\\]|\\[^'])*[*+]?'$/;

/** An unclosed parenthesis, bracket or CASE. */
interface Frame {
  /** The called function; empty for none. */
  readonly name: string;
  readonly isCase: boolean;
  readonly args: Argument[];
  chain: number;
  /** The largest factor of the calls inside. */
  growth: number;
}

interface Argument {
  /** The number or text that is the whole argument; undefined for any other argument. */
  literal: number | string | undefined;
  isEmpty: boolean;
  /** The number of its tokens, where a call is one after its name. */
  parts: number;
  /** The maximum length of its value if it is an array, or a call of `left` or `make_array`. */
  lengthMax: number | undefined;
}

/** Returns the reason why an SQL expression is rejected; undefined for one within the bounds. */
export function problemOfSql(sql: string): string | undefined {
  const outer = frameOf("", false);
  const frames = [outer];
  let top = outer;
  let operators = 0;
  let seen = 0;
  let problem: string | undefined;

  const count = (chain: number) => {
    operators += 1;
    top.chain = chain;
    if (operators > sqlBounds.operators) problem = `has more than ${sqlBounds.operators} operators`;
    if (chain > sqlBounds.chain)
      problem = `has more than ${sqlBounds.chain} operators in a chain without AND, OR or a comma`;
  };
  const open = (frame: Frame) => {
    frames.push(frame);
    top = frame;
    if (frames.length > sqlBounds.depth + 1) problem = `nests deeper than ${sqlBounds.depth} levels`;
  };
  const close = () => {
    if (top === outer) {
      problem = "closes a parenthesis or bracket that is not open";
      return;
    }
    const { name, growth, args } = top;
    frames.pop();
    top = frames.at(-1) ?? outer;
    const factor = problemOfProduct(name, args) ?? factorOf(name, args);
    if (typeof factor === "string") problem = factor;
    else top.growth = Math.max(top.growth, growth * factor);
    if (top.growth > sqlBounds.growth)
      problem = `${name || "CASE"}: produces a value more than ${sqlBounds.growth} times as long`;
    note(top, undefined);
    const last = top.args.at(-1);
    if (last?.parts === (name === "[" ? 1 : 2)) last.lengthMax = lengthMaxOf(name, args);
  };

  /** The previous token if it was a name. A parenthesis after it begins a call. */
  let name = "";
  /** The operator before this token if it has a pattern. */
  let pattern = "";
  tokens.lastIndex = 0;
  for (let match = tokens.exec(sql); match !== null && problem === undefined; match = tokens.exec(sql)) {
    const [token] = match;
    const first = String.fromCodePoint(token.codePointAt(0) ?? 0);
    seen += 1;
    if (seen > sqlBounds.tokens) return `has more than ${sqlBounds.tokens} tokens`;
    const before = name;
    if (/^\p{White_Space}|^--|^\/\*/u.test(token)) continue;
    name = "";
    if (pattern !== "" && token.toLowerCase() !== "to") {
      if (first !== "'" || token.length - 2 > sqlBounds.factor)
        problem = `${pattern}: its pattern must be a text of up to ${sqlBounds.factor} characters`;
      pattern = "";
    }
    if (isDigit(first)) note(top, Number(token.replaceAll("_", "")));
    else if (first === "'" || (first === "$" && token.length > 1)) note(top, token);
    else if (first === '"' || first === "`") {
      name = token.slice(1, -1).toLowerCase();
      note(top, undefined);
    } else if (isName.test(first)) {
      const word = token.toLowerCase();
      note(top, undefined);
      if (connectives.has(word)) count(0);
      else if (operatorWords.has(word)) {
        count(top.chain + 1);
        if (patternWords.has(word)) pattern = word;
      } else if (word === "case") open(frameOf("", true));
      else if (word === "end" && top.isCase) close();
      else if (word === "from" && top.name === "trim") problem = "trim: write btrim(text, characters) instead";
      else name = word;
    } else if (first === "(" || first === "[" || first === "{") {
      if (before !== "" || first === "[") count(top.chain + 1);
      open(frameOf(first === "[" ? "[" : before, false));
    } else if (first === ")" || first === "]" || first === "}") close();
    else if (first === ",") {
      top.chain = 0;
      if (isBounded(top.name)) top.args.push(emptyArgument());
    } else {
      count(top.chain + 1);
      if (token.includes("~")) pattern = token;
      // A sign before a number is part of the literal.
      // For `left`, it means the length of the rest.
      if (!((token === "-" || token === "+") && top.args.at(-1)?.isEmpty) || top.name === "left") note(top, undefined);
    }
  }
  return problem;
}

const isName = /[\p{Alphabetic}_@#]/u;

function isDigit(character: string): boolean {
  return character >= "0" && character <= "9";
}

const measured = new Set([
  ...[lengths, products].flatMap((names) => Object.keys(names)),
  ...[...replacing, ...repeated, ...jsonPaths, "arrow_cast", "left", "make_array", "["],
]);

/** Reports whether the arguments of a function determine its cost or the length of its result. */
function isBounded(name: string): boolean {
  return measured.has(name);
}

function emptyArgument(): Argument {
  return { literal: undefined, isEmpty: true, parts: 0, lengthMax: undefined };
}

/** Returns the maximum length of the result of a call or an array; undefined if it is unknown. */
function lengthMaxOf(name: string, args: readonly Argument[]): number | undefined {
  if (name === "[" || name === "make_array") return args.length;
  const { literal } = args[1] ?? {};
  return name === "left" && typeof literal === "number" ? literal : undefined;
}

/** Returns the reason why a call is rejected whose cost grows faster than the length of its arguments. */
function problemOfProduct(name: string, args: readonly Argument[]): string | undefined {
  const isShort = ({ literal, lengthMax, parts }: Argument) =>
    typeof literal === "string"
      ? literal.length - 2 <= sqlBounds.factor
      : parts <= 2 && lengthMax !== undefined && lengthMax <= sqlBounds.factor;
  const [text, pattern, replacement] = args;
  const factors = (ownValue(products, name) ?? []).flatMap((index) => args[index] ?? []);
  if (factors.length > 0 && !factors.some(isShort))
    return `${name}: its cost is the product of the lengths of its arguments. Write one as a text or an array of up to ${sqlBounds.factor} items, or as left(..., ${sqlBounds.factor})`;
  if (jsonPaths.includes(name) && (typeof pattern?.literal !== "string" || pattern.literal.split("**").length > 2))
    return `${name}: its path must be a text with at most one **`;
  // The growth of a literal counts by its length.
  const isFixed = replacement === undefined || typeof replacement.literal === "string" || isShort(replacement);
  if (replacing.includes(name) && !isFixed && !(text && isShort(text)))
    return `${name}: the length of its result is the product of the lengths of its arguments. Write the replacement as a text, or as left(..., ${sqlBounds.factor})`;
  if (!repeated.includes(name) || text === undefined || isShort(text)) return undefined;
  if (name === "regexp_replace" && args.length < 4) return undefined;
  if (typeof pattern?.literal === "string" && cheapPattern.test(pattern.literal)) return undefined;
  return `${name}: its cost is the square of the length of the text. Write the text as left(..., ${sqlBounds.factor}), or a pattern without groups and alternatives that repeats only its last part`;
}

function frameOf(name: string, isCase: boolean): Frame {
  return { name, isCase, args: [emptyArgument()], chain: 0, growth: 1 };
}

/** Adds a token to the current argument. A literal counts only if the argument contains no other token. */
function note({ args }: Frame, literal: number | string | undefined): void {
  const last = args.at(-1);
  if (last === undefined) return;
  last.literal = last.isEmpty ? literal : undefined;
  last.isEmpty = false;
  last.parts += 1;
}

/** Returns the factor by which a function lengthens its arguments, or the reason why the call is rejected. */
function factorOf(name: string, args: readonly Argument[]): number | string {
  const index = ownValue(lengths, name);
  if (index !== undefined) {
    const counts = index === -1 ? args : args.slice(index, index + 1);
    const numbers = counts.flatMap(({ literal }) => (typeof literal === "number" ? [literal] : []));
    if (numbers.length < counts.length) return `${name}: its length must be a number, not an expression`;
    return Math.max(1, ...numbers);
  }
  if (replacing.includes(name)) {
    const { literal } = args[2] ?? {};
    return typeof literal === "string" ? Math.max(1, literal.length - 2) : 16;
  }
  if (name === "encode") return 2;
  if (name === "arrow_cast") {
    const { literal } = args[1] ?? {};
    if (typeof literal !== "string") return 1;
    if (literal.split("(").length > sqlBounds.depth) return `nests deeper than ${sqlBounds.depth} levels: ${name}`;
    const sizes = [...literal.matchAll(/FixedSize(?:List|Binary)\s*\(\s*(\d+)/gi)].map(([, size]) => Number(size));
    return sizes.reduce((product, size) => product * Math.max(1, size), 1);
  }
  return 1;
}
