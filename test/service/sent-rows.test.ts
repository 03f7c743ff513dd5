/** Rows as they are sent to a client. */
import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import { text } from "node:stream/consumers";
import { expect, onTestFinished, test } from "vitest";
import { sendRows } from "../../service/http/sent-rows.ts";

const rows = new TextEncoder().encode("rows");

/** A request that is to be answered with rows. */
async function takeRequest(): Promise<{ client: Socket; outgoing: ServerResponse }> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => void server.close());
  const client = connect((server.address() as AddressInfo).port, "127.0.0.1");
  client.write("GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
  const [, outgoing]: [unknown, ServerResponse] = (await once(server, "request")) as never;
  return { client, outgoing };
}

/** A query that goes on until it is canceled. */
function endlessQuery() {
  const canceled = Promise.withResolvers<string>();
  const stream = new ReadableStream<Uint8Array>({
    pull: (controller) => controller.enqueue(rows),
    cancel: () => canceled.resolve("canceled"),
  });
  return { stream, canceled: canceled.promise };
}

test("all rows are sent", async () => {
  const { client, outgoing } = await takeRequest();
  const stream = ReadableStream.from([rows, rows]);
  expect(await sendRows(stream, outgoing)).toBeUndefined();
  expect(await text(client)).toContain("4\r\nrows\r\n4\r\nrows\r\n0\r\n");
});

test("a client that goes away ends the query", async () => {
  const { client, outgoing } = await takeRequest();
  const { stream, canceled } = endlessQuery();
  const sent = sendRows(stream, outgoing);
  await once(client, "data");
  client.destroy();
  expect([await canceled, await sent]).toEqual(["canceled", undefined]);
});

test("a client that went away before there are rows ends the query, too", async () => {
  const { client, outgoing } = await takeRequest();
  client.destroy();
  await once(outgoing, "close");
  const { stream, canceled } = endlessQuery();
  expect(await sendRows(stream, outgoing)).toBeUndefined();
  expect(await canceled).toBe("canceled");
});

test("a failure in the middle aborts the connection, and is told", async () => {
  const { client, outgoing } = await takeRequest();
  const cause = new Error("the file is gone");
  async function* failing() {
    yield rows;
    throw cause;
  }
  const received = text(client).catch(({ code }) => code);
  expect(await sendRows(ReadableStream.from(failing()), outgoing)).toEqual({ cause });
  // The last chunk, which would say that all is there, is missing.
  expect(await received).not.toMatch(/0\r\n\r\n$/);
});
