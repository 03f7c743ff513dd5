import ts from "typescript";
import { expect, test } from "vitest";
import { writeClientTypes } from "../../packaging/client-types.ts";

const program = `
import { createCatalogClient } from "./catalog/index.ts";
const catalog = createCatalogClient({ url: "" });
const { tables } = await catalog.listTables({ id: ["films"], limit: 3 });
await catalog.deleteFromTable({ id: ["films", "posters"], predicate: "id > 3" });
console.log(tables);
`;

test("editors show the documentation of operations and of their fields", () => {
  writeClientTypes();
  const root = new URL("../..", import.meta.url).pathname;
  const file = `${root}client/program.ts`;
  const { config } = ts.readConfigFile(`${root}tsconfig.json`, ts.sys.readFile);
  const { options } = ts.parseJsonConfigFileContent(config, ts.sys, root);
  const read = (name: string) => (name === file ? program : ts.sys.readFile(name));
  const service = ts.createLanguageService({
    getScriptFileNames: () => [file],
    getScriptVersion: () => "1",
    getScriptSnapshot: (name) => {
      const text = read(name);
      return text === undefined ? undefined : ts.ScriptSnapshot.fromString(text);
    },
    getCurrentDirectory: () => root,
    getCompilationSettings: () => options,
    getDefaultLibFileName: ts.getDefaultLibFilePath,
    fileExists: (name) => name === file || ts.sys.fileExists(name),
    readFile: read,
    directoryExists: ts.sys.directoryExists,
    getDirectories: ts.sys.getDirectories,
  });
  expect(service.getSemanticDiagnostics(file).map(({ messageText }) => messageText)).toEqual([]);
  const shown = (text: string) => {
    const info = service.getQuickInfoAtPosition(file, program.indexOf(text));
    return `${ts.displayPartsToString(info?.displayParts)}\n${ts.displayPartsToString(info?.documentation)}`;
  };
  const method = shown("listTables(");
  expect(method).toContain("(request: ListTablesRequest, options?: CallOptions) => Promise<ListTablesAnswer>");
  expect(method).toContain("List the tables of a namespace");
  expect(shown("limit: 3")).toContain("limit?: number | undefined\nThe maximum number of items in the response");
  expect(shown("tables }")).toContain("const tables: string[]");
  expect(shown("predicate:")).toMatch(/predicate: string\n\w+/);
});
