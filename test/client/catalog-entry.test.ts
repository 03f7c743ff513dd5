import { describe, expect, test } from "vitest";
import { createCatalogClient, pages } from "../../client/catalog/index.ts";
import { contracts, httpRequest, type RequestShape, requestShape } from "../../protocol/index.ts";
import { uniqueName, useCatalog } from "../support/catalog.ts";
import { startProgram } from "../support/process.ts";

const catalog = useCatalog();

test("the entry of the catalog alone loads nothing of Kubernetes, clouds and Ray", async () => {
  const program = `
    import { registerHooks } from "node:module";
    registerHooks({ load(url, context, next) { process.stdout.write(url + "\\n"); return next(url, context); } });
    await import("@tiltyard/client/catalog");`;
  const { code, stdout } = await startProgram(["--input-type=module", "--eval", program]).finished;
  expect(code).toBe(0);
  const loaded = stdout.split("\n").filter((url) => url.startsWith("file:"));
  expect(loaded.filter((url) => url.includes("/client/")).length).toBeGreaterThan(3);
  expect(
    loaded.filter((url) => /@kubernetes|@aws|@smithy|google|undici|client\/(ray|kubernetes|commands)/.test(url)),
  ).toEqual([]);
});

test("pages follows the tokens of a list to its end", async () => {
  const client = createCatalogClient({ url: catalog.url, apiKey: catalog.adminKey });
  const namespace = uniqueName("ns");
  await client.createNamespace({ id: [namespace] });
  const names = ["a", "b", "c", "d", "e"];
  for (const name of names) await client.declareTable({ id: [namespace, name] });
  const found: string[][] = [];
  for await (const { tables } of pages(client.listTables, { id: [namespace], limit: 2 })) found.push(tables);
  expect(found).toEqual([["a", "b"], ["c", "d"], ["e"]]);
});

describe("the console", () => {
  test.each([
    ["describeTable", { id: ["ns", "t"], version: 1 }],
    ["listTables", { id: [], limit: 20, page_token: "a b" }],
    ["listTableVersions", { id: ["ns", "t"], descending: true }],
    ["createTableTag", { id: ["ns", "t"], tag: "x", version: 1 }],
  ] as const)("sends %s as the client does", async (name, request) => {
    const script = await (await catalog.fetch("/console/contracts.js")).text();
    const module: { httpRequest: typeof httpRequest; operations: Record<string, RequestShape> } = await import(
      `data:text/javascript,${encodeURIComponent(script)}`
    );
    const shape = module.operations[name];
    if (shape === undefined) throw new Error(`the console has no ${name}`);
    expect(module.httpRequest(shape, request)).toEqual(httpRequest(requestShape(contracts[name]), request));
  });
});
