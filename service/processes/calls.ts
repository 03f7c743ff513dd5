import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";
import { CatalogError } from "@tiltyard/protocol";
import split from "split2";
import type { Principal } from "../auth/authenticator.ts";
import { connectToWriter, listenForOthers, writerLost } from "./writer-socket.ts";

/** An operation that another process carries out. Its request was validated and authorized here. */
export interface Call {
  /** The name of its contract. */
  readonly operation: string;
  readonly request: unknown;
  readonly principal: Principal;
  readonly requestId: string;
}

/** What became of a call: the answer, which some operations do not have, or the error. */
export interface Outcome {
  readonly answer?: unknown;
  readonly error?: Pick<CatalogError, "kind" | "message" | "retryAfterSeconds">;
}

interface Numbered {
  readonly number: number;
}

/** Where operations are carried out that change something. */
export interface Writer extends Disposable {
  /**
   * @throws CatalogError that of the operation; ServiceUnavailable when nothing was answered: the operation may have been
   *   carried out.
   */
  carryOut(call: Call): Promise<unknown>;
}

/**
 * Has the process that writes carry out operations: a line of JSON for each, on one connection.
 *
 * @param socketPath Where that process takes calls.
 */
export function createWriter(socketPath: string): Writer {
  let connecting: Promise<Connection> | undefined;
  const connection = () => {
    connecting ??= connectToWriter(() => connectTo(socketPath)).then(
      (connection) => {
        connection.socket.once("close", forget);
        return connection;
      },
      (error) => {
        forget();
        throw error;
      },
    );
    return connecting;
  };
  const forget = () => {
    connecting = undefined;
  };
  return {
    carryOut: async (call) => {
      const { answer, error } = await (await connection()).call(call);
      if (error === undefined) return answer;
      const { kind, message, retryAfterSeconds } = error;
      throw new CatalogError(kind, message, retryAfterSeconds === undefined ? {} : { retryAfterSeconds });
    },
    [Symbol.dispose]: () => {
      connecting?.then(
        ({ socket }) => socket.destroy(),
        () => undefined,
      );
    },
  };
}

interface Connection {
  readonly socket: Socket;
  call(call: Call): Promise<Outcome>;
}

async function connectTo(socketPath: string): Promise<Connection> {
  const socket = connect(socketPath);
  await once(socket, "connect");
  return converse(socket);
}

function converse(socket: Socket): Connection {
  const underWay = new Map<number, PromiseWithResolvers<Outcome>>();
  let calls = 0;
  socket.once("close", () => {
    for (const { reject } of underWay.values()) reject(writerLost());
  });
  const send = lines<Outcome & Numbered>(socket, ({ number, ...outcome }) => {
    underWay.get(number)?.resolve(outcome);
    underWay.delete(number);
  });
  return {
    socket,
    call: (call) => {
      if (socket.destroyed) throw writerLost();
      const number = calls;
      calls += 1;
      const outcome = Promise.withResolvers<Outcome>();
      underWay.set(number, outcome);
      send({ ...call, number });
      return outcome.promise;
    },
  };
}

/**
 * Takes the calls of other processes of this service.
 *
 * @param carryOut Never rejects.
 */
export async function takeCalls(
  socketPath: string,
  carryOut: (call: Call) => Promise<Outcome>,
): Promise<AsyncDisposable> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket.once("close", () => sockets.delete(socket)));
    const send: (outcome: Outcome & Numbered) => void = lines<Call & Numbered>(socket, async ({ number, ...call }) =>
      send({ ...(await carryOut(call)), number }),
    );
  });
  await listenForOthers(server, socketPath);
  return {
    [Symbol.asyncDispose]: async () => {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/**
 * Exchanges messages, a line of JSON for each. Those of one turn of the event loop are sent together: each write wakes the
 * other process.
 *
 * @returns What sends a message.
 */
function lines<Taken>(socket: Socket, take: (message: Taken) => unknown): (message: object) => void {
  let text = "";
  const flush = () => {
    socket.write(text);
    text = "";
  };
  // What ends a connection is told by its close. The last line of a process that was killed may be a part of one.
  socket.on("error", () => undefined);
  const end = () => socket.destroy();
  socket.pipe(split(JSON.parse)).on("data", take).on("error", end);
  return (message) => {
    if (text === "") setImmediate(flush);
    text += `${JSON.stringify(message)}\n`;
  };
}
