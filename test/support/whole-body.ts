import { once } from "node:events";
import { connect, type Socket } from "node:net";

const mebibyte = Buffer.alloc(1024 * 1024, " ");
const mebibytes = 32;

/**
 * Sends a whole body of 32 MiB before it reads anything, as many clients do.
 *
 * @returns The beginning of the answer.
 * @throws Error if the connection closes before the end of the body.
 */
export async function sendWholeBody(
  url: string,
  { headers, isChunked }: { readonly headers: readonly string[]; readonly isChunked: boolean },
): Promise<string> {
  const { hostname, port, pathname } = new URL(url);
  // A failed write throws its own error.
  const socket = connect(Number(port), hostname).on("error", () => {});
  const size = isChunked ? "transfer-encoding: chunked" : `content-length: ${mebibytes * mebibyte.length}`;
  await send(socket, `${[`POST ${pathname} HTTP/1.1`, "host: x", ...headers, size].join("\r\n")}\r\n\r\n`);
  for (let sent = 0; sent < mebibytes; sent += 1)
    for (const part of isChunked ? [`${mebibyte.length.toString(16)}\r\n`, mebibyte, "\r\n"] : [mebibyte])
      await send(socket, part);
  if (isChunked) await send(socket, "0\r\n\r\n");
  const [answer] = await once(socket, "data");
  socket.destroy();
  return String(answer);
}

/** Waits until the socket accepts more bytes. @throws Error if the connection is closed. */
function send(socket: Socket, bytes: string | Buffer): Promise<void> {
  return new Promise((resolve, reject) =>
    socket.write(bytes, (error) => (error === null || error === undefined ? resolve() : reject(error))),
  );
}
