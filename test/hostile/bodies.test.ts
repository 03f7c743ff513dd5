/**
 * The worst bodies that the schemas allow, for every operation of the protocol and of management and for the token
 * endpoint: no other client waits for long, the memory of the service stays small, and no response is a server error.
 * The operations and their bodies are those of the OpenAPI documents, so new operations are included automatically.
 */
import type { AnyContract } from "@tiltyard/protocol";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { commonRequest } from "../../protocol/fields.ts";
import { operations } from "../support/catalog.ts";
import { databaseKind } from "../support/database.ts";
import { kept } from "./kept.ts";
import { type RawRequest, startWatchedService, type WatchedService } from "./service.ts";
import { type Budget, bodiesBadForAnySchema, type JsonSchema, worstBodies } from "./worst-bodies.ts";

const waitMaxMs = 500;
/** The number of attempts. A real blockage of the service repeats; one by a busy machine does not. */
const attempts = 5;
const residentMaxMiB = 400;
const largeBytes = 4 * 1024 * 1024;
const operationTimeoutMs = 600_000;

type Role = "none" | "reader" | "admin";
const roles: readonly Role[] = ["none", "reader", "admin"];
const small: Budget = { bytes: 64 * 1024, values: 8_192, keys: 4_096, depth: 128 };

interface Document {
  readonly paths: Readonly<
    Record<
      string,
      Record<
        string,
        {
          readonly requestBody?: {
            readonly description?: string;
            readonly content: Readonly<Record<string, { readonly schema: JsonSchema }>>;
          };
        }
      >
    >
  >;
  readonly components: { readonly schemas: Readonly<Record<string, JsonSchema>> };
}

let service: WatchedService;
let documents: readonly Document[] = [];
const waits: { readonly what: string; readonly waitedMs: number }[] = [];
let requests = 0;

beforeAll(async () => {
  service = await startWatchedService();
  documents = await Promise.all(
    ["/openapi.json", "/management/v1/openapi.json", "/remote/openapi.json"].map(
      async (path) => JSON.parse((await service.send({ method: "GET", path })).text) as Document,
    ),
  );
}, 60_000);

afterAll(async () => {
  const worst = waits.toSorted((one, other) => other.waitedMs - one.waitedMs).slice(0, 10);
  process.stderr.write(
    `${databaseKind}: ${requests} requests, peak memory ${service.peakResidentMiB().toFixed(0)} MiB, longest waits of others:\n` +
      `${worst.map(({ what, waitedMs }) => `  ${waitedMs.toFixed(0).padStart(5)} ms  ${what}`).join("\n")}\n`,
  );
  await service[Symbol.asyncDispose]();
});

/** Sends a request and checks its effect on other clients. @returns Its status. */
async function sendHostile(what: string, request: RawRequest): Promise<number> {
  let [waitedMs, status, text] = [Number.POSITIVE_INFINITY, 0, ""];
  for (let attempt = 0; attempt < attempts && waitedMs > waitMaxMs; attempt += 1) {
    await service.longestWaitMs();
    const answer = await service.send(request).catch((cause) => {
      throw new Error(`${what}: no answer`, { cause });
    });
    waitedMs = Math.min(waitedMs, await service.longestWaitMs());
    ({ status, text } = answer);
    requests += 1;
  }
  waits.push({ what, waitedMs });
  expect([status, text.slice(0, 500)], `${what}: is no failure of the service`).toSatisfy(() => status < 500);
  expect(waitedMs, `${what}: others waited, in milliseconds`).toBeLessThan(waitMaxMs);
  expect(service.peakResidentMiB(), `${what}: memory in MiB`).toBeLessThan(residentMaxMiB);
  return status;
}

function headersOf(role: Role): Record<string, string> {
  return role === "none" ? {} : { "x-api-key": service.keys[role] };
}

function pathOf(contract: AnyContract): string {
  const id = /\/v1\/namespace\//.test(contract.path) ? kept.namespace : kept.table;
  return contract.path.replace("{id}", encodeURIComponent(id)).replace("{index_name}", "an_index");
}

/** The steps before the validation are the same for all operations, so one of each kind of request tests them. */
function isFirstOfItsKind(contract: AnyContract): boolean {
  return contract === all.find((each) => kindOf(each) === kindOf(contract));
}

/** Returns the roles with which an operation is called. Only some of them pass the steps before the validation. */
function rolesOf(contract: AnyContract): readonly Role[] {
  return isFirstOfItsKind(contract) ? roles : ["admin"];
}

function kindOf({ methods, content, bodySize }: AnyContract): string {
  return [...methods, content, bodySize].join();
}

/** Returns the schema and the limits of a body according to the published document. */
function bodyOf(contract: AnyContract) {
  const document = documents.find(({ paths }) => contract.path in paths);
  const body = document?.paths[contract.path]?.post?.requestBody;
  const [bytes = 0, values = 0, keys = 0, depth = 0] = (body?.description ?? "").match(/\d+/g)?.map(Number) ?? [];
  const json = body?.content["application/json"];
  const resolve = (schema: JsonSchema): JsonSchema =>
    schema.$ref === undefined ? schema : (document?.components.schemas[schema.$ref.split("/").at(-1) ?? ""] ?? {});
  expect([json, bytes, values, keys, depth], "the document tells what a body may be").not.toContain(0);
  const schema = resolve(json?.schema ?? {});
  const properties = Object.entries(schema.properties ?? {}).filter(([name]) => !isTestedOnce(contract, name));
  const own = { ...schema, properties: Object.fromEntries(properties) };
  return { schema: own, resolve, budget: { bytes, values, keys, depth } };
}

/** Reports whether a field of every request is tested with another operation of the same kind. */
function isTestedOnce(contract: AnyContract, field: string): boolean {
  return Object.hasOwn(commonRequest, field) && !isFirstOfItsKind(contract);
}

const all: readonly AnyContract[] = Object.values(operations);
const withBody = all.filter(({ methods, content }) => methods.includes("POST") && content === "json");
const withRows = all.filter(({ content }) => content === "arrow");

describe("the worst bodies do nothing to others, sent to", () => {
  test.each(withBody.map((contract) => [contract.operationId, contract] as const))(
    "%s",
    { timeout: operationTimeoutMs },
    async (operation, contract) => {
      const { schema, resolve, budget } = bodyOf(contract);
      for (const role of rolesOf(contract)) {
        await service.restore();
        const request = { method: "POST", path: pathOf(contract), headers: headersOf(role) };
        const own = role === "none" ? small : budget;
        const badForAnySchema = isFirstOfItsKind(contract)
          ? [{ ...budget, bytes: largeBytes }, own].map(bodiesBadForAnySchema)
          : [];
        for (const bodies of [...badForAnySchema, worstBodies(schema, resolve, own)])
          for (const [name, body] of bodies) await sendHostile(`${operation}, ${role}, ${name}`, { ...request, body });
      }
    },
  );

  test.each(withRows.map((contract) => [contract.operationId, contract] as const))(
    "%s, which accepts rows",
    { timeout: operationTimeoutMs },
    async (operation, contract) => {
      const bodies = {
        "no rows": Buffer.alloc(largeBytes, "["),
        zeros: Buffer.alloc(largeBytes),
        "a schema of 4 MiB": Buffer.concat([
          Buffer.from([255, 255, 255, 255, 0, 0, 63, 0]),
          Buffer.alloc(largeBytes - 8, 4),
        ]),
        "a schema that points to itself": Buffer.concat([
          Buffer.from([255, 255, 255, 255, 0, 1, 0, 0]),
          Buffer.alloc(largeBytes - 8),
        ]),
      };
      for (const role of rolesOf(contract))
        for (const [name, body] of Object.entries(bodies)) {
          const path = `${pathOf(contract)}?on=id&when_not_matched_insert_all=true`;
          await sendHostile(`${operation}, ${role}, ${name}`, { method: "POST", path, headers: headersOf(role), body });
        }
    },
  );

  test("the token endpoint", { timeout: operationTimeoutMs }, async () => {
    for (const bytes of [8 * 1024, largeBytes])
      for (const [name, text] of Object.entries({
        "nothing but fields": "a&",
        "nothing but empty fields": "&",
        "fields that repeat": "grant_type=x&",
        "one long field": "x",
        "percent signs": "%",
        "escaped characters": "%61",
        pluses: "+",
      })) {
        const body = text.repeat(bytes / text.length);
        const headers = { "content-type": "application/x-www-form-urlencoded" };
        const request = { method: "POST", path: "/oauth/token", headers, body };
        expect([400, 413]).toContain(await sendHostile(`the token endpoint, ${name}, ${bytes} bytes`, request));
      }
  });
});

describe("the worst paths and headers do nothing to others, sent to", () => {
  const most = 14 * 1024;
  const ids = ["%24".repeat(most / 3), "a%24".repeat(most / 4), "x".repeat(most), "%".repeat(most)];
  const credentials = [
    { authorization: `Bearer ${"x".repeat(most)}` },
    { authorization: `Bearer ${"a.".repeat(most / 2)}` },
    { authorization: " ".repeat(most) },
    { "x-api-key": "x".repeat(most) },
  ];
  const own = (contract: AnyContract) => [
    ...Object.keys(contract.query.shape),
    ...(isFirstOfItsKind(contract) ? ["delimiter", "x"] : []),
  ];
  const tested = all.filter((contract) => own(contract).length > 0);
  test.each(tested.map((contract) => [contract.operationId, contract] as const))(
    "%s",
    { timeout: operationTimeoutMs },
    async (operation, contract) => {
      for (const method of contract.methods)
        for (const role of rolesOf(contract)) {
          const path = pathOf(contract);
          const parameters = own(contract);
          const queries = [
            ...parameters.flatMap((name) => [
              `${name}=${"x".repeat(most)}`,
              `${name}=${"%5B".repeat(most / 3)}`,
              `${name}=${"1".repeat(most)}`,
              `${name}=x&`.repeat(most / (name.length + 3)),
            ]),
            "&".repeat(most),
            "a&".repeat(most / 2),
          ];
          for (const query of queries)
            await sendHostile(`${operation} by ${method}, ${role}, ?${query.slice(0, 20)}...`, {
              method,
              path: `${path}?${query}`,
              headers: headersOf(role),
            });
          for (const id of isFirstOfItsKind(contract) ? ids : [])
            await sendHostile(`${operation} by ${method}, ${role}, /${id.slice(0, 20)}...`, {
              method,
              path: contract.path.replace("{id}", id).replace("{index_name}", id.slice(0, 1_000)),
              headers: headersOf(role),
            });
        }
      for (const credential of isFirstOfItsKind(contract) ? credentials : []) {
        const [method = "POST"] = contract.methods;
        const what = `${operation}, ${JSON.stringify(credential).slice(0, 40)}...`;
        expect(await sendHostile(what, { method, path: pathOf(contract), headers: credential })).toBe(401);
      }
    },
  );
});
