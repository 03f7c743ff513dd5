/** What a client is answered that sends all of a body before it reads, as most do, and is refused in the middle of it. */
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { afterEach, describe, expect, test } from "vitest";
import { endAfterBody } from "../../service/http/refused-body.ts";
import { useCatalog } from "../support/catalog.ts";
import { sendWholeBody } from "../support/whole-body.ts";

const catalog = useCatalog();
const mebibyte = Buffer.alloc(1024 * 1024, " ");

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

describe("the body of a refused request", () => {
  const stopped: (() => void)[] = [];
  afterEach(() => {
    for (const stop of stopped.splice(0)) stop();
  });

  /** Refuses one request whose body never ends. @returns The client's connection, and what it gets until that is closed. */
  async function refuse(limits: { readonly bytesMax: number; readonly ms: number }) {
    const server = createServer().listen(0, "127.0.0.1");
    await once(server, "listening");
    const socket = connect((server.address() as AddressInfo).port, "127.0.0.1").on("error", () => {});
    stopped.push(
      () => socket.destroy(),
      () => server.close(),
    );
    socket.write("POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 1000000000000000\r\n\r\n");
    const [incoming, outgoing]: [IncomingMessage, ServerResponse] = (await once(server, "request")) as never;
    outgoing.writeHead(401, { "content-length": 7 }).write("refused");
    const ended = endAfterBody(incoming, outgoing, limits);
    let received = "";
    socket.setEncoding("utf8").on("data", (part) => {
      received += part;
    });
    // What the client still sends may fail then.
    const answer = new Promise<string>((resolve) => socket.once("close", () => resolve(received)));
    return { socket, ended, answer };
  }

  test("is taken no longer than the service waits for it", async () => {
    const { answer } = await refuse({ bytesMax: 1_000, ms: 10 });
    expect(await answer).toMatch(/refused$/);
  });

  test("is taken no further than the service takes any", async () => {
    const { socket, answer } = await refuse({ bytesMax: mebibyte.length, ms: 1_000_000 });
    const endless = setInterval(() => socket.write(mebibyte), 1);
    stopped.push(() => clearInterval(endless));
    expect(await answer).toMatch(/refused$/);
  });

  test("is no longer waited for when the client goes away", async () => {
    const { socket, ended } = await refuse({ bytesMax: mebibyte.length, ms: 1_000_000 });
    socket.destroy();
    await expect(ended).resolves.toBeUndefined();
  });
});
