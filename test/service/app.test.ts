import { type AnyContract, ErrorResponse } from "@tiltyard/protocol";
import { describe, expect, test } from "vitest";
import { routePath } from "../../service/http/app.ts";
import { createTestApp } from "../support/app.ts";
import { operations } from "../support/catalog.ts";

const app = createTestApp();
const all = Object.values<AnyContract>(operations);
const headers = { "x-api-key": "any", "content-type": "application/json" };

function pathOf({ path }: AnyContract): string {
  return path.replace("{id}", "a$b").replace("{index_name}", "an_index");
}

async function send(contract: AnyContract, path: string, body?: string) {
  const method = contract.methods.includes("POST") ? "POST" : "GET";
  const response = await app.request(path, { method, headers, ...(body !== undefined && { body }) }, {});
  return { status: response.status, text: await response.text() };
}

describe("every operation", () => {
  test.each(all.map((contract) => [contract.operationId, contract] as const))(
    "%s is a route whose steps run in the documented order",
    (_, contract) => {
      for (const method of contract.methods) {
        const steps = app.routes
          .filter((route) => route.method === method && route.path === routePath(contract))
          .map(({ handler }) => handler.name);
        // The validators of @hono/zod-validator have no names.
        const validateBody = contract.content === "json" ? "" : "validateUnlessArrow";
        expect(steps).toEqual(["admit", "", validateBody, "answer"]);
      }
    },
  );

  test.each(
    all
      .filter(
        ({ methods, content, bareField }) => methods.includes("POST") && content !== "arrow" && bareField === undefined,
      )
      .map((contract) => [contract.operationId, contract] as const),
  )("%s validates its JSON body", async (_, contract) => {
    const { status, text } = await send(contract, pathOf(contract), '{"context": 5, "job_id": 5, "identity": 5}');
    expect([status, ErrorResponse.parse(JSON.parse(text)).detail]).toEqual([
      400,
      expect.stringMatching(/(context|job_id): must be an? \w+, not a number/),
    ]);
  });

  test.each(
    all.flatMap((contract) =>
      Object.keys(contract.query.shape).map((name) => [contract.operationId, name, contract] as const),
    ),
  )("%s validates the query parameter %s", async (_, name, contract) => {
    // A parameter must have one value or values that are words of the protocol; fields in a list have a maximum length.
    const { status, text } = await send(contract, `${pathOf(contract)}?${name}=x&${name}=`);
    expect([status, ErrorResponse.parse(JSON.parse(text)).detail]).toEqual([
      400,
      expect.stringMatching(`(^|; )${name}(\\.\\d)?: `),
    ]);
  });
});

test("an operation that no contract has is 404", async () => {
  expect((await app.request("/v1/nothing", { method: "POST", headers }, {})).status).toBe(404);
});

test.each(["/management/v1/caller/describe", "/v1/table/t/stats", "/unknown"])(
  "a shared cache must not keep the response of %s, which belongs to its caller",
  async (path) => {
    const response = await createTestApp().request(path, { headers }, {});
    expect(response.headers.get("cache-control")).toBe("no-store");
  },
);
