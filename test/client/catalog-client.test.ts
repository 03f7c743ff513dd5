import { once } from "node:events";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { contracts } from "@tiltyard/protocol";
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from "vitest";
import {
  type CatalogClientOptions,
  CatalogConnectionError,
  CatalogRequestError,
  CatalogResponseError,
  createCatalogClient,
  createManagementClient,
  pages,
} from "../../client/index.ts";
import { commit, declareTable, useCatalog } from "../support/catalog.ts";
import { createFilms } from "../support/rows.ts";

const catalog = useCatalog();
const client = (options: Partial<CatalogClientOptions> = {}) =>
  createCatalogClient({ url: catalog.url, apiKey: catalog.adminKey, ...options });

/** Returns a fetch that fails in the specified ways before it succeeds. */
function troubled(...troubles: (() => Response)[]) {
  const sent: string[] = [];
  const instead: typeof fetch = async (input, init) => {
    sent.push(String(input));
    const trouble = troubles.shift();
    return trouble === undefined ? fetch(input, init) : trouble();
  };
  return { fetch: instead, sent };
}
const slowDown = () => new Response("", { status: 503, headers: { "retry-after": "0" } });
const breakOff = (): Response => {
  throw new TypeError("fetch failed", { cause: new Error("ECONNRESET") });
};

describe("the client of the catalog", () => {
  test("has every operation of the protocol, and those on registered Functions and on secrets", () => {
    const secrets = ["createSecret", "alterSecret", "describeSecret", "dropSecret", "listSecrets"];
    const names = [...Object.keys(contracts), "describeFunction", "dropFunction", "listFunctions", ...secrets];
    expect(Object.keys(client()).toSorted()).toEqual(names.toSorted());
  });

  test("creates a namespace and a table, commits versions and reads them", async () => {
    const { createNamespace, declareTable: declare, listTables, tableExists, listTableVersions } = client();
    await createNamespace({ id: ["a space"], properties: { owner: "me" } });
    const { location } = await declare({ id: ["a space", "t"] });
    expect(location).toMatch(/^file:/);
    expect((await listTables({ id: ["a space"], limit: 10 })).tables).toEqual(["t"]);
    await tableExists({ id: ["a space", "t"] });
    const table = await declareTable(catalog);
    for (const version of [1, 2]) await commit(catalog, table, version);
    const { versions } = await listTableVersions({ id: table.id, descending: true, limit: 1 });
    expect(versions.map((each) => each.version)).toEqual([2]);
  });

  test("sends and answers a map that is a whole body in the field that it has in the request", async () => {
    const id = await createFilms(catalog);
    const answer = await client().updateTableSchemaMetadata({ id, metadata: { context: "is a key", a: "b" } });
    expect(answer).toMatchObject({ metadata: { context: "is a key", a: "b" }, context: expect.any(Object) });
    const { schema } = await client().describeTable({ id, load_detailed_metadata: true });
    expect(schema?.metadata).toEqual(answer.metadata);
  });

  test("manages the catalog: keys, roles, transactions", async () => {
    const management = createManagementClient({ url: catalog.url, apiKey: catalog.adminKey });
    const grant = { namespace: ["managed"], role: "writer" as const };
    const { key, api_key_id } = await management.createApiKey({ principal: "managed", grant });
    const own = createManagementClient({ url: catalog.url, apiKey: key });
    expect(await own.describeCaller({})).toMatchObject({ principal: "managed", grants: [grant] });
    await management.putGrant({ id: ["managed", "a/b"], principal: "managed", role: "admin" });
    const { grants } = await own.listGrants({ id: ["managed", "a/b"] });
    expect(grants).toEqual([{ principal: "managed", namespace: ["managed", "a/b"], role: "admin" }]);
    const { transactions } = await management.listTransactions({ id: [], status: ["Succeeded", "Failed"], limit: 1 });
    expect(transactions.map(({ operation }) => operation)).toEqual(["PutGrant"]);
    await management.revokeApiKey({ api_key_id });
    await expect(own.describeCaller({})).rejects.toMatchObject({ status: 401 });
  });

  test("follows a transaction from queued to succeeded", async () => {
    const { alterTransaction, describeTransaction } = client();
    const table = await declareTable(catalog);
    const management = createManagementClient({ url: catalog.url, apiKey: catalog.adminKey });
    const { job_id } = await management.openJob({ id: table.id, column: "c" });
    const id = job_id.split("$");
    expect((await describeTransaction({ id })).status).toBe("Queued");
    for (const status of ["Running", "Succeeded"] as const)
      expect((await alterTransaction({ id, actions: [{ setStatusAction: { status } }] })).status).toBe(status);
    await expect(alterTransaction({ id, actions: [{ setStatusAction: { status: "Running" } }] })).rejects.toMatchObject(
      { status: 409 },
    );
  });

  test("sends what begins with header. as headers, and gets headers back as such entries", async () => {
    const answer = await client({
      context: { "header.traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01" },
    }).listNamespaces({
      context: { "header.x-request-id": "my-request", note: "kept in the body" },
    });
    expect(answer.context["header.x-request-id"]).toBe("my-request");
    expect(answer.context["header.content-type"]).toContain("application/json");
    const seen: RequestInit[] = [];
    const spy: typeof fetch = async (input, init) => {
      if (init !== undefined) seen.push(init);
      return fetch(input, init);
    };
    await client({ fetch: spy }).describeNamespace({ context: { "header.x-request-id": "b", note: "n" } });
    expect(new Headers(seen[0]?.headers).get("x-request-id")).toBe("b");
    expect(JSON.parse(String(seen[0]?.body))).toEqual({ context: { note: "n" } });
  });

  test("accepts the context of a response in the next request", async () => {
    const { context } = await client().listNamespaces({});
    await client().createNamespace({ id: ["next"], context });
  });

  test("sends its own credential instead of that of a context entry in another case", async () => {
    await client({ context: { "header.X-Api-Key": "wrong" } }).listNamespaces({});
  });

  test("names a context entry that is not a valid header, without its value", async () => {
    const { fetch: instead, sent } = troubled();
    const failed = client({ fetch: instead }).listNamespaces({ context: { "header.x-note": "secret\nsecond line" } });
    await expect(failed).rejects.toThrow(/^the name or the value of the context entry header.x-note is not valid/);
    expect(sent).toEqual([]);
  });

  test("throws the catalog's errors with their code, their words and the request's id", async () => {
    const error = await client()
      .describeTable({ id: ["no", "such"] })
      .catch((caught: unknown) => caught);
    expect(error).toBeInstanceOf(CatalogRequestError);
    expect(error).toMatchObject({ status: 404, code: 4, operation: "DescribeTable", requestId: expect.any(String) });
    await expect(client({ apiKey: "wrong" }).listNamespaces({})).rejects.toMatchObject({ status: 401, code: 16 });
  });

  test("accepts a function that returns a token for each request", async () => {
    const body = new URLSearchParams({ grant_type: "client_credentials", client_secret: catalog.adminKey });
    const given = await fetch(`${catalog.url}/oauth/token`, { method: "POST", body });
    const { access_token } = (await given.json()) as { access_token: string };
    await createCatalogClient({ url: `${catalog.url}/`, token: async () => access_token }).listNamespaces({});
  });

  test("rejects with the error of a function that returns no token", async () => {
    const expired = new Error("the refresh token has expired");
    const token = vi.fn().mockRejectedValue(expired);
    await expect(createCatalogClient({ url: catalog.url, token }).listNamespaces({})).rejects.toBe(expired);
    expect(token).toHaveBeenCalledOnce();
  });

  test("shows no token with a line break that a function returns", async () => {
    const listed = createCatalogClient({ url: catalog.url, token: async () => "secret\nline" }).listNamespaces({});
    await expect(listed).rejects.toThrow(/^the key or token of the catalog contains invalid characters/);
  });

  test.each([
    ["an answer that says slow down", slowDown],
    ["a connection that broke off", breakOff],
    ["a gateway without a catalog behind it", () => new Response("<html>", { status: 502 })],
    ["a gateway that waited in vain", () => new Response("<html>", { status: 504 })],
    ["a gateway that limits requests", () => new Response("<html>", { status: 429 })],
  ])("repeats what only reads after %s", async (_, trouble) => {
    const { fetch: instead, sent } = troubled(trouble, trouble);
    await client({ fetch: instead }).listNamespaces({});
    expect(sent).toHaveLength(3);
  });

  test("repeats a commit, which is the same commit then, and nothing else that changes something", async () => {
    const table = await declareTable(catalog);
    const { fetch: instead, sent } = troubled(breakOff, breakOff);
    const manifest_path = "nowhere";
    await client({ fetch: instead })
      .createTableVersion({ id: table.id, version: 1, manifest_path })
      .catch(() => {});
    expect(sent).toHaveLength(3);
    const once = troubled(breakOff);
    await expect(client({ fetch: once.fetch }).createNamespace({ id: ["x"] })).rejects.toBeInstanceOf(
      CatalogConnectionError,
    );
    expect(once.sent).toHaveLength(1);
  });

  test("does not wait for a catalog that requests a delay of a day", async () => {
    const later = () => new Response("", { status: 503, headers: { "retry-after": "86400" } });
    const { fetch: instead, sent } = troubled(later);
    await expect(client({ fetch: instead }).listNamespaces({})).rejects.toMatchObject({ retryAfterSeconds: 86_400 });
    expect(sent).toHaveLength(1);
  });

  test("follows no redirect, which would send the key to another host", async () => {
    const received: string[] = [];
    const listen = async (answer: RequestListener) => {
      const server = createServer(answer).listen(0, "127.0.0.1");
      await once(server, "listening");
      onTestFinished(() => void server.close());
      return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    };
    const other = await listen((request, response) => {
      received.push(String(request.url));
      response.end('{"namespaces":[]}');
    });
    const url = await listen((_, response) => response.writeHead(307, { location: `${other}/stolen` }).end());
    const failed = client({ url }).listNamespaces({});
    await expect(failed).rejects.toBeInstanceOf(CatalogRequestError);
    await expect(failed).rejects.toThrow(`HTTP 307 redirects to ${other}/stolen`);
    await expect(client({ url }).createNamespace({ id: ["x"] })).rejects.toMatchObject({ status: 307 });
    expect(received).toEqual([]);
  });

  test.each([
    ["<html>Sign in</html>", "text that is not JSON"],
    ["", "the response: "],
    ["null", "the response: "],
    ["[]", "the response: "],
    ['"text"', "the response: "],
    ['{"tables": 7}', "tables: "],
  ])("names the URL whose successful response is not one of the operation: %s", async (text, problem) => {
    const answering = { fetch: async () => new Response(text), retries: 0 };
    const failed = client(answering).listTables({});
    await expect(failed).rejects.toBeInstanceOf(CatalogResponseError);
    await expect(failed).rejects.toThrow(`ListTables: no Tiltyard catalog answers at ${catalog.url}: ${problem}`);
  });

  test("does not conclude from the page of a login that a namespace exists", async () => {
    const answering = { fetch: async () => new Response("<html>Sign in</html>") };
    await expect(client(answering).namespaceExists({ id: ["x"] })).rejects.toBeInstanceOf(CatalogResponseError);
  });

  test("addresses an object whose name contains the delimiter, and not the one with the same text", async () => {
    await client().createNamespace({ id: ["money"] });
    await client().declareTable({ id: ["money", "bag"] });
    await expect(client().dropTable({ id: ["money$bag"] })).rejects.toMatchObject({ status: 404 });
    await client().declareTable({ id: ["money$bag"] });
    await client().dropTable({ id: ["money$bag"] });
    await client().tableExists({ id: ["money", "bag"] });
  });

  test.each([".", ".."])(
    "rejects the name %s of an index, which would turn the path into that of the table",
    async (name) => {
      const id = await createFilms(catalog);
      const dropped = client().dropTableIndex({ id, indexName: name });
      await expect(dropped).rejects.toThrow(`URLs cannot contain the name "${name}"`);
      await client().tableExists({ id });
    },
  );

  test("ends a list at an empty page token", async () => {
    const { fetch: instead, sent } = troubled(() => new Response('{"tables": ["t"], "page_token": ""}'));
    const listed = [];
    for await (const { tables } of pages(client({ fetch: instead }).listTables, { id: [] })) listed.push(...tables);
    expect([listed, sent.length]).toEqual([["t"], 1]);
  });

  test.each(["apiKey", "token"])("rejects an %s with a line break without showing it", (name) => {
    const wrong = { [name]: "secret\nsecond line" };
    expect(() => client(wrong)).toThrow(/^the key or token of the catalog contains invalid characters/);
    expect(() => client({ [name]: "with a line's end\n" })).not.toThrow();
  });

  test.each([
    ["localhost 2333", /^the URL of the catalog must begin with http:.* it is localhost 2333$/],
    ["localhost:2333", /^the URL of the catalog must begin with http:.* it is localhost:2333$/],
    ["http://me:secret@localhost:2333", /^the URL of the catalog must not contain a name or a password$/],
  ])("refuses the URL %s", (url, message) => {
    expect(() => client({ url })).toThrow(message);
  });

  test("fails after the last retry and names the address that did not respond", async () => {
    const { fetch: instead, sent } = troubled(breakOff, breakOff, breakOff);
    const asked = client({ fetch: instead, retries: 1 }).listNamespaces({});
    await expect(asked).rejects.toThrow(
      /^ListNamespaces: no Tiltyard catalog answers at http:\/\/127.0.0.1:\d+: ECONNRESET$/,
    );
    expect(sent).toHaveLength(2);
  });

  describe("over rows", () => {
    beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] }));
    afterEach(() => void vi.useRealTimers());
    const minutes = 10;
    /** A body whose pieces last ten minutes in total and twenty seconds each. */
    const slowly = () =>
      ReadableStream.from(
        (function* () {
          for (let piece = 0; piece < minutes * 3; piece++) {
            vi.advanceTimersByTime(20_000);
            yield new Uint8Array([piece]);
          }
        })(),
      );
    const inserted = JSON.stringify({ num_inserted_rows: 1, version: 2 });
    /** A body with one piece and no further data within the timeout. */
    const stuck = () =>
      ReadableStream.from(
        (async function* () {
          yield new Uint8Array([1]);
          vi.advanceTimersByTime(30_000);
          await new Promise(() => {});
        })(),
      );
    /** Returns a catalog that reads the request and responds with this body. */
    const takes = (answer: () => string | ReadableStream): typeof fetch => {
      return async (_, init) => {
        const broken = new Promise<never>((_resolve, reject) => {
          init?.signal?.addEventListener("abort", () => reject(init.signal?.reason));
        });
        const body = await Promise.race([new Response(init?.body).arrayBuffer(), broken]);
        const answered = new Response(answer(), { headers: { "x-bytes": String(body.byteLength) } });
        const bytes = new Response(
          answered.body?.pipeThrough(new TransformStream(), init?.signal ? { signal: init.signal } : {}),
        );
        return new Response(bytes.body, answered);
      };
    };

    test("limits the silence of the catalog but not the duration of a stream", async () => {
      const sent = await client({ fetch: takes(() => inserted) }).insertIntoTable({ id: ["t"] }, { body: slowly() });
      expect(sent.context["header.x-bytes"]).toBe("30");
      const whole = new Uint8Array(1_000_000);
      const inOne = await client({ fetch: takes(() => inserted) }).insertIntoTable({ id: ["t"] }, { body: whole });
      expect(inOne.context["header.x-bytes"]).toBe("1000000");
      const { data } = await client({ fetch: takes(slowly) }).queryTable({ id: ["t"], k: 10 });
      expect(data).toHaveLength(30);
    });

    test("times out when neither side sends data", async () => {
      const silent = /no Tiltyard catalog answers.*timeout: no data was sent or received for 30000 ms/;
      const sent = client({ fetch: takes(() => inserted) }).insertIntoTable({ id: ["t"] }, { body: stuck() });
      await expect(sent).rejects.toThrow(silent);
      await expect(client({ fetch: takes(stuck), retries: 0 }).queryTable({ id: ["t"], k: 10 })).rejects.toThrow(
        silent,
      );
    });
  });

  test("stops on abort and after its timeout", async () => {
    const never: typeof fetch = (_, init) =>
      new Promise((_resolve, reject) => {
        if (init?.signal?.aborted) reject(init.signal.reason);
        init?.signal?.addEventListener("abort", () => reject(init.signal?.reason));
      });
    await expect(client({ fetch: never, timeoutMs: 10, retries: 0 }).listNamespaces({})).rejects.toThrow(
      /no Tiltyard catalog answers.*timeout/,
    );
    await client({ timeoutMs: Number.POSITIVE_INFINITY, retries: 0 }).listNamespaces({});
    const controller = new AbortController();
    const asked = client({ fetch: never }).listNamespaces({}, { signal: controller.signal });
    controller.abort(new Error("enough"));
    await expect(asked).rejects.toThrow("enough");
  });

  test("ends with the reason of its signal during the delay that the catalog requests before a retry", async () => {
    const controller = new AbortController();
    const busy: typeof fetch = async () => {
      setImmediate(() => controller.abort(new Error("enough")));
      return new Response("{}", { status: 429, headers: { "retry-after": "30" } });
    };
    const asked = client({ fetch: busy }).listNamespaces({}, { signal: controller.signal });
    await expect(asked).rejects.toThrow("enough");
  });

  test.each([
    [{ timeoutMs: 0 }, "timeoutMs must be more than 0, or Infinity for no limit, not 0"],
    [{ timeoutMs: Number.NaN }, "timeoutMs must be more than 0, or Infinity for no limit, not NaN"],
    [{ retries: -1 }, "retries must be 0 or a positive integer, not -1"],
    [{ retries: 1.5 }, "retries must be 0 or a positive integer, not 1.5"],
    [{ retries: Number.NaN }, "retries must be 0 or a positive integer, not NaN"],
  ])("refuses %j at its creation, before any call fails because of it", (wrong, message) => {
    expect(() => client(wrong)).toThrow(message);
  });
});
