/** The response of rows as a client on a socket receives it. */
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { text } from "node:stream/consumers";
import { contracts } from "@tiltyard/protocol";
import { Hono } from "hono";
import { requestId } from "hono/request-id";
import { expect, onTestFinished, test, vi } from "vitest";
import type { AppEnv } from "../../service/http/context.ts";
import { respond } from "../../service/http/respond.ts";
import { createLog } from "../../service/log.ts";
import { close, createHttpServer, listen } from "../../service/server/server.ts";

const rows = new TextEncoder().encode("rows");
const log = createLog("silent");

/** Sends a request whose response is a stream of rows. */
async function request(stream: ReadableStream<Uint8Array>): Promise<Socket> {
  const app = new Hono<AppEnv>();
  app.use(requestId());
  app.get("/", (c) => respond(c, contracts.queryTable, stream, log));
  const server = createHttpServer(app, { idleMax: 10, idlePerAddressMax: undefined, onEvict: () => {} });
  const { hostname, port } = new URL(await listen(server, { host: "127.0.0.1", port: 0 }));
  onTestFinished(() => close(server));
  const client = connect(Number(port), hostname);
  client.write("GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
  return client;
}

test("a response holds all rows", async () => {
  const client = await request(ReadableStream.from([rows, rows]));
  const received = await text(client);
  expect(received).toMatch(/^HTTP\/1.1 200 /);
  expect(received).toContain("rows");
  expect(received).toMatch(/0\r\n\r\n$|content-length: 8[\s\S]*rowsrows$/i);
});

test("a client that disconnects cancels the query", async () => {
  const cancelled = Promise.withResolvers<string>();
  const client = await request(
    new ReadableStream<Uint8Array>({
      pull: (controller) => controller.enqueue(rows),
      cancel: () => cancelled.resolve("cancelled"),
    }),
  );
  await once(client, "data");
  client.destroy();
  expect(await cancelled.promise).toBe("cancelled");
});

test("a client that stops reading cancels the query after a minute, and a slow one has more time for much", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  onTestFinished(() => void vi.useRealTimers());
  const cancel = vi.fn();
  const mebibyte = new Uint8Array(1024 ** 2);
  let pulled = 0;
  const pull = (controller: ReadableStreamDefaultController<Uint8Array>) => {
    pulled += 1;
    controller.enqueue(mebibyte);
  };
  const client = await request(new ReadableStream<Uint8Array>({ pull, cancel }));
  client.pause();
  await expect.poll(() => pulled).toBeGreaterThan(1);
  vi.advanceTimersByTime(120_000);
  expect(cancel).not.toHaveBeenCalled();
  // The buffers of both sides fill first.
  const pass = () => {
    vi.advanceTimersByTime(2_000);
    return cancel;
  };
  await expect.poll(pass).toHaveBeenCalled();
});

test("a failure in the middle of the rows closes the connection and is logged", async () => {
  const logged = vi.spyOn(log, "error");
  const cause = new Error("the file is gone");
  async function* failing() {
    for (let index = 0; index < 10; index += 1) {
      yield rows;
      await new Promise(setImmediate);
    }
    throw cause;
  }
  const client = await request(ReadableStream.from(failing()));
  const received = await text(client).catch(({ code }) => code);
  // The last chunk, which ends a complete response, is missing.
  expect(received).not.toMatch(/0\r\n\r\n$/);
  expect(logged).toHaveBeenCalledWith(expect.objectContaining({ err: cause }), expect.any(String));
});
