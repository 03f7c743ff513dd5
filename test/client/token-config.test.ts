import { createServer, type Server } from "node:https";
import type { AddressInfo } from "node:net";
import { CustomObjectsApi, type KubeConfig } from "@kubernetes/client-node";
import { generate } from "selfsigned";
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import { forwardPort } from "../../client/kubernetes/port-forward.ts";
import { type Token, tokenConfig } from "../../client/kubernetes/token-config.ts";

/** An API server that records the credential of each request. */
let server: Server;
let caData: string;
const credentials: (string | undefined)[] = [];

beforeAll(async () => {
  const { cert, private: key } = await generate([{ name: "commonName", value: "localhost" }], {
    extensions: [{ name: "subjectAltName", altNames: [{ type: 2, value: "localhost" }] }],
  });
  caData = Buffer.from(cert).toString("base64");
  server = createServer({ cert, key }, (request, response) => {
    credentials.push(request.headers.authorization);
    response.writeHead(200, { "content-type": "application/json" }).end('{"items":[]}');
  });
  server.on("upgrade", (request, socket) => {
    credentials.push(request.headers.authorization);
    socket.destroy();
  });
  await new Promise<void>((resolve) => server.listen(0, "localhost", resolve));
});
afterAll(() => server.close());
beforeEach(() => {
  credentials.length = 0;
});

function configWith(fetchToken: () => Promise<Token>): KubeConfig {
  const { port } = server.address() as AddressInfo;
  return tokenConfig({ name: "lancedb", server: `https://localhost:${port}`, caData }, fetchToken);
}

async function ask(config: KubeConfig): Promise<void> {
  const where = { group: "ray.io", version: "v1", plural: "rayclusters", namespace: "lancedb" };
  await config.makeApiClient(CustomObjectsApi).listNamespacedCustomObject(where);
}

/** Returns successive tokens that are valid for a quarter of an hour. */
function tokens(): () => Promise<Token> {
  let count = 0;
  return async () => ({ token: `token-${++count}`, expiresAtMillis: Date.now() + 15 * 60_000 });
}

describe("a token of a cloud", () => {
  test("is sent with every request and with forwarded ports", async () => {
    const config = configWith(tokens());
    await Promise.all([ask(config), ask(config)]);
    await using forwarding = await forwardPort(config, "lancedb", async () => "head", 8265);
    await expect(fetch(`http://127.0.0.1:${forwarding.port}`)).rejects.toThrow();
    expect(credentials).toEqual(Array(3).fill("Bearer token-1"));
  });

  test("is renewed a minute before it ends", async () => {
    const config = configWith(tokens());
    vi.useFakeTimers({ toFake: ["Date"] });
    await ask(config);
    for (const minutes of [13, 1.5]) {
      vi.setSystemTime(Date.now() + minutes * 60_000);
      await ask(config);
    }
    vi.useRealTimers();
    expect(credentials).toEqual(["Bearer token-1", "Bearer token-1", "Bearer token-2"]);
  });

  test("is requested again after a failure", async () => {
    const next = tokens();
    const fetchToken = vi.fn(next).mockRejectedValueOnce(new Error("the cloud is away"));
    const config = configWith(fetchToken);
    await expect(ask(config)).rejects.toThrow("the cloud is away");
    await ask(config);
    expect(credentials).toEqual(["Bearer token-1"]);
  });
});
