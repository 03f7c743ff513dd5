/** Clients that send a whole body before they read the response, like most clients. */
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { useCatalog } from "../support/catalog.ts";
import { sendWholeBody } from "../support/whole-body.ts";

const catalog = useCatalog();

// A busy machine may send the body more slowly than the service allows.
beforeAll(() => void vi.spyOn(AbortSignal, "timeout").mockImplementation(() => new AbortController().signal));
afterAll(() => vi.restoreAllMocks());

describe.each(["close", "keep-alive"])(
  "a refused request (Connection: %s) is answered after its body was sent:",
  (connection) => {
    test.each([
      ["too large, with its length", 413, false],
      ["too large, in chunks", 413, true],
      ["without a valid credential, with its length", 401, false],
      ["without a valid credential, in chunks", 401, true],
    ])("%s", async (_, status, isChunked) => {
      const headers = [`x-api-key: ${status === 401 ? "wrong" : catalog.adminKey}`, `connection: ${connection}`];
      const answer = await sendWholeBody(`${catalog.url}/v1/namespace/n/describe`, { headers, isChunked });
      expect(answer).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
    });
  },
);
