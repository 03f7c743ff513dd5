/** Extracts the texts that people read from TypeScript: titles of tests, messages of errors, and texts of the console. */
import ts from "typescript";

/** A text with the line of the file, from 1. */
export interface Text {
  /** The rules for titles of groups are those of messages, because a group may continue the title of another one. */
  readonly kind: "title" | "group" | "message";
  readonly text: string;
  readonly line: number;
}

const kinds: ReadonlyMap<string, Text["kind"]> = new Map([
  ["test", "title"],
  ["describe", "group"],
]);

export function textsOf(path: string, source: string): readonly Text[] {
  const file = ts.createSourceFile(path, source, ts.ScriptTarget.Latest, true);
  const texts: Text[] = [];
  const add = (kind: Text["kind"], node: ts.Node, text: string) =>
    texts.push({ kind, text: text.replace(/\s+/g, " ").trim(), line: lineOf(file, node) });
  const isTest = path.endsWith(".test.ts");
  const visit = (node: ts.Node): void => {
    if (ts.isCallExpression(node) && isTest) {
      const [title, body] = node.arguments;
      const kind = kinds.get(nameOf(node.expression));
      if (kind !== undefined && title !== undefined && body !== undefined)
        for (const text of literalsOf(title)) add(kind, title, text);
    }
    if (ts.isNewExpression(node) && !isTest && /Error$/.test(node.expression.getText(file)))
      for (const argument of node.arguments ?? [])
        for (const text of literalsOf(argument)) add("message", argument, text);
    if (ts.isJsxText(node)) add("message", node, node.text);
    ts.forEachChild(node, visit);
  };
  visit(file);
  return texts.filter(({ text }) => text !== "");
}

/** Returns the name of a called function: `test` for `test.each([...])`. */
function nameOf(called: ts.Expression): string {
  if (ts.isIdentifier(called)) return called.text;
  return ts.isCallExpression(called) || ts.isPropertyAccessExpression(called) ? nameOf(called.expression) : "";
}

/** Returns the text of a literal with X in place of its expressions; none for other nodes. */
function literalsOf(node: ts.Node): readonly string[] {
  if (ts.isStringLiteralLike(node)) return [node.text];
  if (ts.isTemplateExpression(node))
    return [node.head.text + node.templateSpans.map(({ literal }) => `X${literal.text}`).join("")];
  return ts.isBinaryExpression(node) ? [[node.left, node.right].flatMap(literalsOf).join("")] : [];
}

function lineOf(file: ts.SourceFile, node: ts.Node): number {
  return file.getLineAndCharacterOfPosition(node.getStart(file)).line + 1;
}
