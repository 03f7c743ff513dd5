import { RateLimiterCluster } from "rate-limiter-flexible";
import type { Limiter, Store } from "../store/store.ts";
import { type Question, type Role, type ToSupervisor, ToWorker } from "./messages.ts";

/** The processes of one service, as one of them sees them. */
export interface Group {
  /** What this process does when it begins. */
  readonly role: Role;
  readonly count: number;
  /** The port that all of them listen on. */
  readonly port: number;
  /** Where the process that writes has its sockets: a folder that only this user may enter. */
  readonly folder: string;
  /** Whether the service has served before this process began: then its database is there. */
  readonly hasServed: boolean;
  /** Is called when this process is to write, because the one that did has ended. */
  onWrite(begin: () => Promise<void>): void;
  /** Asks all other processes. One that ends meanwhile, or takes too long, is left out. */
  ask(question: Question): Promise<readonly unknown[]>;
  /** Answers what another process asks. */
  onQuestion(answer: (question: Question) => Promise<unknown>): void;
  /** Makes a limiter that counts together with those of this name in all other processes. */
  createLimiter(name: string, options: Parameters<Store["createLimiter"]>[0]): Limiter;
  /** Tells that this process takes requests. */
  ready(url: string): void;
  /** Resolves when this process is told to stop; rejects when it cannot begin to write. */
  readonly stopped: Promise<void>;
  /** Resolves when this process is told to stop and all others have ended. */
  readonly alone: Promise<void>;
}

/** Joins the group in which this process was started. */
export async function joinGroup(): Promise<Group> {
  const stopped = Promise.withResolvers<void>();
  const alone = Promise.withResolvers<void>();
  const asked = new Map<number, (answers: readonly unknown[]) => void>();
  let questions = 0;
  const begun = Promise.withResolvers<Extract<ToWorker, { tiltyard: "begin" }>>();
  const writing = Promise.withResolvers<void>();
  const answering = Promise.withResolvers<(question: Question) => Promise<unknown>>();

  const tell = (message: ToSupervisor) => process.send?.(message);
  const take = async (message: ToWorker) => {
    if (message.tiltyard === "begin") begun.resolve(message);
    else if (message.tiltyard === "write") writing.resolve();
    else if (message.tiltyard === "stop") stopped.resolve();
    else if (message.tiltyard === "alone") alone.resolve();
    else if (message.tiltyard === "answers") asked.get(message.id)?.(message.answers);
    else {
      const answer = await answering.promise;
      tell({ tiltyard: "answer", id: message.id, answer: await answer(message.question) });
    }
  };
  process.on("message", (message) => {
    const known = ToWorker.safeParse(message);
    // Reads of this turn of the event loop may be older than the message, which is handled after it.
    if (known.success) setImmediate(() => void take(known.data));
  });
  // A terminal signals all processes at once; this one waits for the supervisor's message.
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => undefined);
  tell({ tiltyard: "joined" });
  const { role, count, port, folder, hasServed } = await begun.promise;

  return {
    role,
    count,
    port,
    folder,
    hasServed,
    onWrite: (begin) => void writing.promise.then(begin).catch(stopped.reject),
    ask: (question) => {
      const id = questions;
      questions += 1;
      return new Promise((resolve) => {
        asked.set(id, (answers) => {
          asked.delete(id);
          resolve(answers);
        });
        tell({ tiltyard: "ask", id, question });
      });
    },
    onQuestion: answering.resolve,
    createLimiter: (name, { points, durationSeconds }) =>
      new RateLimiterCluster({ keyPrefix: name, points, duration: durationSeconds }),
    ready: (url) => tell({ tiltyard: "ready", url }),
    stopped: stopped.promise,
    alone: alone.promise,
  };
}
