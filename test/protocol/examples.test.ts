/**
 * Sends the examples of the OpenAPI documents to a catalog in their order. `npm test -- test/protocol/examples.test.ts -u`
 * writes the responses, and keeps the recorded values that differ between catalogs, such as ids and times.
 */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { arrowTypeOf } from "@tiltyard/protocol";
import { expect, test } from "vitest";
import { type OperationName, operations, pathOf, useCatalog } from "../support/catalog.ts";
import { arrowStream, films } from "../support/rows.ts";
import { secretsKeyFile } from "../support/secrets.ts";

const file = new URL("../../protocol/api-document/examples.json", import.meta.url).pathname;
const catalog = useCatalog({ TILTYARD_DROP_RETENTION: "1d", TILTYARD_SECRETS_KEY_FILE: secretsKeyFile() });

interface Example {
  readonly operation: OperationName;
  readonly request: Readonly<Record<string, unknown>>;
  readonly response?: unknown;
}

/** The fields whose values differ between catalogs. A response that is one text contains durations and paths. */
const volatile =
  /^(|binding|.*_(id|uuid|millis|uri|size|path|bytes|ms)|key|location|e_tag|page_token|timestamp|heartbeat|(created|updated)_at|createAt|manifestSize|path|x-.*)$/;

test("each example is accepted and has its response", async () => {
  const examples: readonly Example[] = JSON.parse(readFileSync(file, "utf8"));
  const ofThisCatalog = new Map<string, string>();
  const executed: Example[] = [];
  /** The key of the latest job, which alone may read its secrets. */
  let keyOfJob = "";
  for (const { operation, request, response } of examples) {
    const sent = replace(request, ofThisCatalog) as typeof request;
    stageManifests(sent);
    const { content, response: schema } = operations[operation];
    const isArrow = content === "arrow";
    const key = operation === "readJobSecrets" ? { key: keyOfJob } : {};
    const answer = await catalog.call(operation, sent, isArrow ? { body: arrowStream(films) } : key);
    if (operation === "createJobKey") ({ key: keyOfJob } = answer.body as { readonly key: string });
    if (arrowTypeOf(schema) !== undefined) {
      await new Response(answer.body as unknown as ReadableStream).arrayBuffer();
      executed.push({ operation, request });
    } else
      executed.push({
        operation,
        request,
        response: recorded("", JSON.parse(JSON.stringify(answer.body ?? null)), response),
      });
  }
  // Some texts contain such values, such as the principal of a job's key.
  const text = [...ofThisCatalog].reduce(
    (all, [example, actual]) => all.replaceAll(actual, example),
    JSON.stringify(executed, null, 2),
  );
  await expect(`${text}\n`).toMatchFileSnapshot(file);

  /** Returns a response with the recorded values of volatile fields. Remembers the values of this catalog. */
  function recorded(name: string, actual: unknown, example: unknown): unknown {
    if (Array.isArray(actual))
      return actual.map((item, index) => recorded(name, item, Array.isArray(example) ? example[index] : undefined));
    if (typeof actual === "object" && actual !== null)
      return Object.fromEntries(
        // Lance returns some fields in any order.
        Object.entries(actual)
          .toSorted(([one], [other]) => placeOf(one, example) - placeOf(other, example))
          .map(([key, value]) => [key, recorded(key, value, fieldOf(example, key))]),
      );
    if (!volatile.test(name) || typeof example !== typeof actual) return actual;
    if (typeof example === "string" && typeof actual === "string") {
      ofThisCatalog.set(example, actual);
      // Requests name a job by the parts of its id.
      ofThisCatalog.set(example.split("$").at(-1) ?? "", actual.split("$").at(-1) ?? "");
      if (name === "location")
        ofThisCatalog.set(pathOf({ id: [], location: example }), pathOf({ id: [], location: actual }));
    }
    return example;
  }
});

test("every operation has an example", () => {
  const examples: readonly Example[] = JSON.parse(readFileSync(file, "utf8"));
  const present = new Set<string>(examples.map(({ operation }) => operation));
  const missing = Object.keys(operations).filter((name) => !present.has(name));
  expect(missing, "add them to protocol/api-document/examples.json").toEqual([]);
});

function fieldOf(value: unknown, name: string): unknown {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>)[name] : undefined;
}

function placeOf(name: string, fields: unknown): number {
  return Object.keys(fields ?? {}).indexOf(name);
}

/** Replaces recorded values in a request, also as parts of texts. */
function replace(value: unknown, values: ReadonlyMap<string, string>): unknown {
  if (typeof value === "string")
    return [...values].reduce((text, [from, to]) => (from.length > 8 ? text.replaceAll(from, to) : text), value);
  if (Array.isArray(value)) return value.map((item) => replace(item, values));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, replace(inner, values)]));
}

/** Writes the manifests that a request commits, as a Lance client does. */
function stageManifests(value: unknown): void {
  if (typeof value !== "object" || value === null) return;
  for (const [name, inner] of Object.entries(value))
    if (name !== "manifest_path") stageManifests(inner);
    else {
      mkdirSync(dirname(`/${inner}`), { recursive: true });
      writeFileSync(`/${inner}`, "a manifest");
    }
}
