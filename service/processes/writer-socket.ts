import { once } from "node:events";
import { chmodSync, existsSync, mkdirSync, rmSync } from "node:fs";
import type { Server } from "node:net";
import { dirname } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { CatalogError } from "@tiltyard/protocol";

/** How long a request waits for the process that writes, after it ended and until another one takes its place. */
const waitsMs = 5_000;
const retryMs = 10;
/** How often the process that writes checks that its socket is there. */
const checkEveryMs = 1_000;

/**
 * Has a server of the process that writes listen for the other processes, and listen again when its socket was deleted.
 *
 * @param socketPath In a folder that only this user may read; one that was deleted is created again. A socket left over
 *   there is replaced.
 */
export async function listenForOthers(server: Server, socketPath: string): Promise<void> {
  await listen(server, socketPath);
  const check = setInterval(() => {
    if (!server.listening || existsSync(socketPath)) return;
    // The connections that it has stay open.
    server.close();
    listen(server, socketPath).catch(() => undefined);
  }, checkEveryMs).unref();
  server.on("close", () => {
    if (!server.listening) clearInterval(check);
  });
}

async function listen(server: Server, socketPath: string): Promise<void> {
  mkdirSync(dirname(socketPath), { recursive: true, mode: 0o700 });
  rmSync(socketPath, { force: true });
  // Without the supervisor, which would keep connections for a process that has ended.
  server.listen({ path: socketPath, exclusive: true });
  await once(server, "listening");
  chmodSync(socketPath, 0o600);
}

/**
 * Waits until the process that writes is there: what is sent then is sent once.
 *
 * @param connect Connects to it.
 * @throws CatalogError ServiceUnavailable
 */
export async function connectToWriter<Connected>(connect: () => Promise<Connected>): Promise<Connected> {
  const givesUpAt = performance.now() + waitsMs;
  for (;;)
    try {
      return await connect();
    } catch (cause) {
      const isAbsent = cause instanceof Error && "syscall" in cause && cause.syscall === "connect";
      if (!isAbsent || performance.now() > givesUpAt) throw writerLost(cause);
      await pause(retryMs);
    }
}

/** What a caller is told when the process that writes has ended before it answered. */
export function writerLost(cause?: unknown): CatalogError {
  return new CatalogError(
    "ServiceUnavailable",
    "the process that carries out changes ended before it answered: check whether the change was made, or retry",
    { cause },
  );
}
