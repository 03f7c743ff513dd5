import { expect, test } from "vitest";
import { type Context, createCatalogClient, type Page, pages } from "../../client/catalog/index.ts";
import { uniqueName, useCatalog } from "../support/catalog.ts";
import { startProgram } from "../support/process.ts";

const catalog = useCatalog();

test("the entry of the catalog alone loads nothing of Kubernetes, clouds and Ray", async () => {
  const program = `
    import { registerHooks } from "node:module";
    registerHooks({ load(url, context, next) { process.stdout.write(url + "\\n"); return next(url, context); } });
    await import("@tiltyard/client/catalog");`;
  const { code, stdout } = await startProgram(["--input-type=module", "--eval", program], {}, { folder: process.cwd() })
    .finished;
  expect(code).toBe(0);
  const loaded = stdout.split("\n").filter((url) => url.startsWith("file:"));
  expect(loaded.filter((url) => url.includes("/client/")).length).toBeGreaterThan(3);
  expect(
    loaded.filter((url) => /@kubernetes|@aws|@smithy|google|undici|client\/(ray|kubernetes|commands)/.test(url)),
  ).toEqual([]);
});

test("pages follows the tokens of a list to its end", async () => {
  // A program needs these types to pass the options on, and to write its own function over pages.
  const context: Context = { "header.x-request-id": "pages" };
  const tokenOf = ({ page_token }: Page) => page_token;
  const client = createCatalogClient({ url: catalog.url, apiKey: catalog.adminKey, context });
  const namespace = uniqueName("ns");
  await client.createNamespace({ id: [namespace] });
  const names = ["a", "b", "c", "d", "e"];
  for (const name of names) await client.declareTable({ id: [namespace, name] });
  const found: string[][] = [];
  for await (const { tables } of pages(client.listTables, { id: [namespace], limit: 2 })) found.push(tables);
  expect(found).toEqual([["a", "b"], ["c", "d"], ["e"]]);
  const all = await client.listTables({ id: [namespace] });
  expect([all.context["header.x-request-id"], tokenOf(all)]).toEqual(["pages", undefined]);
});
