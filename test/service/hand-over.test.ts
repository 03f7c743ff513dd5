/** Requests that one process of a service hands over to another one. */
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import { join } from "node:path";
import { contracts } from "@tiltyard/protocol";
import { expect, onTestFinished, test } from "vitest";
import { exchangeOf } from "../../service/http/exchange.ts";
import { createHandOver, type HandOver } from "../../service/http/hand-over.ts";
import { connectionsHandedOver } from "../../service/http/handed-over.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

/** A request whose body is still coming, as the process has it that took it. */
async function takeRequest(
  body = "{",
): Promise<{ client: Socket; incoming: IncomingMessage; outgoing: ServerResponse }> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => void server.close());
  const client = connect((server.address() as AddressInfo).port, "127.0.0.1");
  client.write(`POST /v1/table/t/query HTTP/1.1\r\nhost: x\r\ncontent-length: 10\r\n\r\n${body}`);
  const [incoming, outgoing]: [IncomingMessage, ServerResponse] = (await once(server, "request")) as never;
  incoming.on("error", () => {});
  return { client, incoming, outgoing };
}

/** The process that writes. */
function listenAt(path: string) {
  const writer = createServer().listen(path);
  onTestFinished(() => void writer.close());
  return writer;
}

function handOverTo(path: string): HandOver {
  const handOver = createHandOver(path, () => "127.0.0.1", connectionsHandedOver());
  onTestFinished(() => handOver[Symbol.dispose]());
  return handOver;
}

const socketPath = () => join(temporaryFolder("tiltyard-hand-over-"), "requests");

test("a request whose client left while the process that writes was away leaves nothing behind in it", async () => {
  const path = socketPath();
  const { client, incoming, outgoing } = await takeRequest();
  const answered = handOverTo(path).handOver(exchangeOf(incoming, outgoing), contracts.queryTable);
  client.destroy();
  await once(outgoing, "close");
  listenAt(path);
  await expect(answered).rejects.toMatchObject({ kind: "InvalidInput" });
});

test("a client that leaves when the process that writes has its request is no failure of that process", async () => {
  const path = socketPath();
  const writer = listenAt(path);
  const { client, incoming, outgoing } = await takeRequest();
  const answered = handOverTo(path).handOver(exchangeOf(incoming, outgoing), contracts.queryTable);
  const [there]: [IncomingMessage] = (await once(writer, "request")) as never;
  there.on("error", () => {});
  client.destroy();
  await expect(answered).resolves.toBeUndefined();
});

test("a request is handed over before its body comes", async () => {
  const path = socketPath();
  const writer = listenAt(path);
  const { client, incoming, outgoing } = await takeRequest("");
  const answered = handOverTo(path).handOver(exchangeOf(incoming, outgoing), contracts.queryTable);
  const [, response]: [IncomingMessage, ServerResponse] = (await once(writer, "request")) as never;
  response.end("refused");
  await expect(answered).resolves.toBeUndefined();
  client.destroy();
});

test("a request is 503 when the process that writes ends before it answers", async () => {
  const path = socketPath();
  const writer = listenAt(path);
  const { client, incoming, outgoing } = await takeRequest();
  const answered = handOverTo(path).handOver(exchangeOf(incoming, outgoing), contracts.queryTable);
  await once(writer, "request");
  writer.closeAllConnections();
  await expect(answered).rejects.toMatchObject({ kind: "ServiceUnavailable" });
  client.destroy();
});
