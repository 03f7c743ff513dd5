import type { SyntaxNode } from "@lezer/common";
import { parser } from "@lezer/python";

/** The limits of the text that is parsed from the entry point on. Hostile sources of 1 MiB would last for minutes. */
const parsedLengthMax = 32 * 1024;
const parseMillisMax = 50;
/** An annotation with several values, such as an optional array. A type such as `pa.int32()` is that of one value. */
const severalValues = /\b(?:(?:pa|pyarrow)\.(?:\w*Array|Table|Scalar)|Array|ChunkedArray|RecordBatch)\b/;

/**
 * Returns the problem of the entry point of a module: it is missing, its header is not valid Python, or no job could call
 * it. The parser rejects some valid expressions and statements, so they are not checked.
 */
export function problemOfEntryPoint(source: string, name: string, parameters: readonly string[]): string | undefined {
  const start = [...source.matchAll(new RegExp(`^(?:def|class) +${name}\\b`, "gm"))].at(-1)?.index;
  if (start === undefined) return `the source defines no function or class ${name}`;
  const text = source.slice(start, start + parsedLengthMax);
  const textOf = (node: SyntaxNode | null | undefined) => (node ? text.slice(node.from, node.to) : "");
  const lineOf = ({ from }: SyntaxNode) => source.slice(0, start + from).split(/\r\n|\r|\n/).length;
  const { definition, end } = parse(text);
  const methods = definition?.getChild("Body")?.getChildren("FunctionDefinition") ?? [];
  const isCall = (method: SyntaxNode) => textOf(method.getChild("VariableName")) === "__call__";
  const called = definition?.name === "ClassDefinition" ? methods.findLast(isCall) : definition;
  const error = [definition, called].flatMap(headerErrors).find((node) => node.type.isError && node.from < end);
  if (error !== undefined) return `line ${lineOf(error)}: the definition of ${name} is not valid Python`;
  const types = called?.getChild("ParamList")?.getChildren("TypeDef") ?? [];
  const annotated = parameters.map((parameter) => {
    const type = types.find(({ prevSibling }) => textOf(prevSibling) === parameter);
    const annotation = textOf(type).replace(/^:\s*["']?|["']$/g, "");
    // function_child.py reads it in the same way.
    const kind = annotation.match(/(?:^|\.)(Array|RecordBatch)$/)?.[1];
    return { parameter, type, annotation, kind, isUnknown: kind === undefined && severalValues.test(annotation) };
  });
  const isMixed = annotated.some(({ kind }) => kind !== annotated[0]?.kind);
  const wrong = annotated.find(
    ({ kind, isUnknown }) => isUnknown || (kind && (isMixed || (kind === "RecordBatch" && parameters.length > 1))),
  );
  if (wrong?.type === undefined) return undefined;
  return `line ${lineOf(wrong.type)}: the parameter ${wrong.parameter} has the annotation ${wrong.annotation.slice(0, 100)}. Use pyarrow.Array for all parameters, pyarrow.RecordBatch for the only one, or types of one value`;
}

/** Parses the first statement. It may be incomplete at the position where the parser stopped. */
function parse(text: string) {
  const partial = parser.startParse(text);
  const stopsAt = performance.now() + parseMillisMax;
  let tree = partial.advance();
  while (tree === null) {
    if (partial.stoppedAt === null && performance.now() > stopsAt) partial.stopAt(partial.parsedPos);
    tree = partial.advance();
  }
  return { definition: tree.topNode.firstChild, end: partial.stoppedAt ?? parsedLengthMax };
}

/** Returns nodes of which one is an error if the header of a definition is wrong, or its body does not begin. */
function headerErrors(definition: SyntaxNode | null | undefined): SyntaxNode[] {
  const lists = ["ParamList", "ArgList"].map((name) => definition?.getChild(name));
  const first = definition?.getChild("Body")?.firstChild;
  return [...[definition, ...lists].map((node) => node?.getChild("⚠")), first, first?.nextSibling].filter(
    (node) => !!node,
  );
}
