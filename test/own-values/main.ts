/**
 * Finds plain accesses of objects by names from outside, such as `templates[name]` and `name in templates`.
 * Both also find the members of every object, such as `constructor`. `ownValue`, `Object.hasOwn` and `Map` do not.
 */
import { globSync } from "node:fs";
import { join, relative } from "node:path";
import ts from "typescript";

const project = join(import.meta.dirname, "../..");
/** The types of Pulumi take longer than those of everything else, and only the operator's own settings reach `infra`. */
const workspaces = "{protocol,platform,lance-worker,service,client,runner,console,tiltyard}";
const files = globSync(`${workspaces}/**/*.{ts,tsx}`, { cwd: project, exclude: ["**/node_modules/**"] });
/** The only place where such an access is guarded. */
const guard = "protocol/own-value.ts";

const host = { ...ts.sys, onUnRecoverableConfigFileDiagnostic: () => {} };
const { options } = ts.getParsedCommandLineOfConfigFile(join(project, "tsconfig.json"), {}, host) ?? { options: {} };
const program = ts.createProgram(
  files.map((file) => join(project, file)),
  { ...options, noEmit: true, incremental: false, jsx: ts.JsxEmit.ReactJSX },
);
const checker = program.getTypeChecker();

let problems = 0;
for (const file of files.filter((each) => each !== guard)) {
  const source = program.getSourceFile(join(project, file));
  if (source !== undefined) visit(source, source);
}
if (problems > 0) {
  process.stderr.write(`${problems} accesses by a name: use ownValue of @tiltyard/protocol, Object.hasOwn or a Map\n`);
  process.exitCode = 1;
}

function visit(node: ts.Node, source: ts.SourceFile): void {
  if (isUnguarded(node)) {
    problems += 1;
    const { line } = source.getLineAndCharacterOfPosition(node.getStart());
    process.stderr.write(`${relative(project, source.fileName)}:${line + 1}: ${node.getText()}\n`);
  }
  ts.forEachChild(node, (child) => visit(child, source));
}

function isUnguarded(node: ts.Node): boolean {
  if (ts.isElementAccessExpression(node)) return !isAssigned(node) && isAnyText(node.argumentExpression);
  if (ts.isBindingElement(node) && node.propertyName !== undefined && ts.isComputedPropertyName(node.propertyName))
    return isAnyText(node.propertyName.expression);
  return ts.isBinaryExpression(node) && node.operatorToken.kind === ts.SyntaxKind.InKeyword && isAnyText(node.left);
}

function isAssigned(node: ts.ElementAccessExpression): boolean {
  const { parent } = node;
  return (
    ts.isDeleteExpression(parent) ||
    (ts.isBinaryExpression(parent) && parent.left === node && parent.operatorToken.kind === ts.SyntaxKind.EqualsToken)
  );
}

/** Reports whether an expression may be any text, and not only one of some literals. */
function isAnyText(expression: ts.Expression): boolean {
  const isText = (type: ts.Type): boolean =>
    type.isUnion() ? type.types.some(isText) : (type.flags & ts.TypeFlags.String) !== 0;
  return isText(checker.getTypeAtLocation(expression));
}
