import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { Agent, request } from "node:http";
import { join } from "node:path";
import { z } from "zod";
import { createTestDatabase } from "../support/database.ts";
import { imageEnvironment } from "../support/dockerfile.ts";
import { childrenOf } from "../support/process.ts";
import { arrowStream, films } from "../support/rows.ts";
import { createServiceProcess } from "../support/service-process.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { kept } from "./kept.ts";

/** A catalog in a process of its own, as its image runs it, and one that watches how long others wait for it. */
export interface WatchedService extends AsyncDisposable {
  readonly url: string;
  /** The process that was started; the others, if it is to be several, are its children. */
  readonly pid: number;
  readonly keys: { readonly reader: string; readonly admin: string };
  /** Sends a request on a connection of its own, which the kernel gives to any of the processes. */
  send(request: RawRequest): Promise<Answer>;
  /** Makes what is kept anew, where a request has taken it away. */
  restore(): Promise<void>;
  /** The longest that any other client waited for an answer since the last call, in milliseconds. */
  longestWaitMs(): Promise<number>;
  /** The memory that its processes have together, in MiB. */
  residentMiB(): number;
  /** The most memory that any of its processes ever had, in MiB. */
  peakResidentMiB(): number;
}

/** How many processes serve, behind one port. */
export const processes = Number(process.env.TILTYARD_HOSTILE_PROCESSES ?? 1);

export interface RawRequest {
  readonly method: string;
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array;
}

export interface Answer {
  readonly status: number;
  readonly text: string;
}

/** Of the image, what is about memory. */
const image = z.object({ MALLOC_ARENA_MAX: z.string(), NODE_OPTIONS: z.string() }).parse(imageEnvironment());

export async function startWatchedService(environment: Record<string, string> = {}): Promise<WatchedService> {
  const database = await createTestDatabase();
  const folder = temporaryFolder("tiltyard-hostile-");
  const service = createServiceProcess(folder, {
    MALLOC_ARENA_MAX: image.MALLOC_ARENA_MAX,
    // The heap is what Node gives itself in a pod of 512 MiB.
    NODE_OPTIONS: `${image.NODE_OPTIONS} --max-old-space-size=256`,
    TILTYARD_DATABASE_URL: database.url,
    TILTYARD_FAILED_CREDENTIALS: "1000000",
    TILTYARD_PROCESSES: `${processes}`,
    ...environment,
  });
  const { pid } = await service.start();
  const pids = processes === 1 ? [pid] : childrenOf(pid);
  const url = service.url();
  const send = (raw: RawRequest) => sendRaw(url, raw);

  const admin = { "x-api-key": service.key };
  const made = async (path: string, body: string | Uint8Array) => {
    const { status, text } = await send({ method: "POST", path, headers: admin, body });
    if (status !== 200) throw new Error(`${path} answered ${status} ${text}`);
    return JSON.parse(text);
  };
  const restore = async () => {
    await made(`/v1/namespace/${kept.namespace}/create`, '{"mode":"ExistOk"}');
    await made(`/v1/table/${encodeURIComponent(kept.table)}/create?mode=ExistOk`, arrowStream(films));
  };
  await restore();
  const grant = { namespace: [kept.namespace], role: "reader" };
  const { key } = await made("/management/v1/api_key/create", JSON.stringify({ principal: "a reader", grant }));

  const probes = pids.map((each) => fork(join(import.meta.dirname, "probe.ts"), [url, `${each}`]));
  const longestWaitMs = async () => Math.max(...(await Promise.all(probes.map(askProbe))));
  await longestWaitMs();
  return {
    url,
    pid,
    keys: { reader: key, admin: service.key },
    send,
    restore,
    longestWaitMs,
    residentMiB: () => pids.reduce((sum, each) => sum + residentMiB(each), 0),
    peakResidentMiB: () => Math.max(...pids.map(peakResidentMiB)),
    [Symbol.asyncDispose]: async () => {
      for (const probe of probes) probe.kill();
      await service[Symbol.asyncDispose]();
      await database.drop();
    },
  };
}

async function askProbe(probe: ChildProcess): Promise<number> {
  const answered = once(probe, "message");
  probe.send("longest");
  const [longestMs] = await answered;
  return Number(longestMs);
}

/** The most memory that a process ever had, in MiB. */
function peakResidentMiB(pid: number): number {
  return Number(/^VmHWM:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]) / 1024;
}

/** The memory that a process has, in MiB. */
function residentMiB(pid: number): number {
  return Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]) / 1024;
}

/** Sends bytes as they are. An answer that comes before all of them were sent is the answer. */
function sendRaw(url: string, { method, path, headers, body = "" }: RawRequest): Promise<Answer> {
  // The service is to go on with the connection.
  const agent = new Agent({ keepAlive: true });
  const answered = new Promise<Answer>((resolve, reject) => {
    const bytes = Buffer.from(body);
    const sent = method === "GET" ? {} : { "content-length": bytes.length };
    const sending = request(url + path, { method, agent, headers: { ...headers, ...sent } }, (response) => {
      let text = "";
      response.setEncoding("utf8");
      response.on("data", (chunk: string) => {
        // An answer of rows is long.
        if (text.length < 1_000_000) text += chunk;
      });
      response.on("end", () => resolve({ status: response.statusCode ?? 0, text }));
      response.on("error", reject);
    });
    sending.on("error", reject);
    sending.end(method === "GET" ? undefined : bytes);
  });
  return answered.finally(() => agent.destroy());
}
