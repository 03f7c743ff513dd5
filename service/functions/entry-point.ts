import type { SyntaxNode } from "@lezer/common";
import { parser } from "@lezer/python";

/** The length of the text that is parsed from the entry point on: a hostile one lasts for 0.2 s, and 1 MiB for minutes. */
const parsedLengthMax = 8 * 1024;
/** The end of a text that was cut: errors there are those of the cut. */
const cutLength = 1024;
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
  const end = text.length < parsedLengthMax ? text.length + 1 : text.length - cutLength;
  const definition = parser.parse(text).topNode.firstChild;
  const methods = definition?.getChild("Body")?.getChildren("FunctionDefinition") ?? [];
  const isCall = (method: SyntaxNode) => textOf(method.getChild("VariableName")) === "__call__";
  const called = definition?.name === "ClassDefinition" ? methods.findLast(isCall) : definition;
  const error = [definition, called].flatMap(headerErrors).find((node) => node.type.isError && node.from < end);
  if (error !== undefined) return `line ${lineOf(error)}: the definition of ${name} is not valid Python`;
  const list = called?.getChild("ParamList");
  if (!list || list.to >= end) return undefined;
  const types = new Map(list.getChildren("TypeDef").map((type) => [textOf(type.prevSibling), type]));
  const annotated = parameters.map((parameter) => {
    const type = types.get(parameter);
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

/** Returns nodes of which one is an error if the header of a definition is wrong, or its body does not begin. */
function headerErrors(definition: SyntaxNode | null | undefined): SyntaxNode[] {
  const lists = ["ParamList", "ArgList"].map((name) => definition?.getChild(name));
  const first = definition?.getChild("Body")?.firstChild;
  return [...[definition, ...lists].map((node) => node?.getChild("⚠")), first, first?.nextSibling].filter(
    (node) => !!node,
  );
}
