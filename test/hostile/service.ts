import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { Agent, request } from "node:http";
import { join } from "node:path";
import { z } from "zod";
import { createTestDatabase } from "../support/database.ts";
import { imageEnvironment } from "../support/dockerfile.ts";
import { arrowStream, films } from "../support/rows.ts";
import { createServiceProcess } from "../support/service-process.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { kept } from "./kept.ts";

/** A catalog in its own process, configured as in its image, and a second process that measures how long other clients wait. */
export interface WatchedService extends AsyncDisposable {
  readonly url: string;
  readonly pid: number;
  readonly keys: { readonly reader: string; readonly admin: string };
  /** Sends a request on its own connection. */
  send(request: RawRequest): Promise<Answer>;
  /** Recreates the namespace and the table that the tests use, in case a request removed them. */
  restore(): Promise<void>;
  /** Returns the longest wait of any other client since the last call, in milliseconds. */
  longestWaitMs(): Promise<number>;
  /** Returns the resident memory of the service, in MiB. */
  residentMiB(): number;
  /** Returns the peak resident memory of the service, in MiB. */
  peakResidentMiB(): number;
}

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

/** The memory settings of the image. */
const image = z.object({ MALLOC_ARENA_MAX: z.string(), NODE_OPTIONS: z.string() }).parse(imageEnvironment());

export async function startWatchedService(environment: Record<string, string> = {}): Promise<WatchedService> {
  const database = await createTestDatabase();
  const folder = temporaryFolder("tiltyard-hostile-");
  const service = createServiceProcess(folder, {
    MALLOC_ARENA_MAX: image.MALLOC_ARENA_MAX,
    // Node chooses this heap size in a pod with 512 MiB.
    NODE_OPTIONS: `${image.NODE_OPTIONS} --max-old-space-size=256`,
    TILTYARD_DATABASE_URL: database.url,
    TILTYARD_FAILED_CREDENTIALS: "1000000",
    ...environment,
  });
  const { pid } = await service.start();
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

  const probe = fork(join(import.meta.dirname, "probe.ts"), [url, `${pid}`]);
  const longestWaitMs = () => askProbe(probe);
  await longestWaitMs();
  return {
    url,
    pid,
    keys: { reader: key, admin: service.key },
    send,
    restore,
    longestWaitMs,
    residentMiB: () => statusMiB(pid, "VmRSS"),
    peakResidentMiB: () => statusMiB(pid, "VmHWM"),
    [Symbol.asyncDispose]: async () => {
      probe.kill();
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

/** Returns a field of a process's status in MiB: VmRSS is its memory now, VmHWM its peak. */
function statusMiB(pid: number, field: "VmRSS" | "VmHWM"): number {
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  return Number(new RegExp(`^${field}:\\s+(\\d+)`, "m").exec(status)?.[1]) / 1024;
}

/** Sends bytes unchanged. The service may answer before it received all of them. */
function sendRaw(url: string, { method, path, headers, body = "" }: RawRequest): Promise<Answer> {
  // The service must be able to reuse the connection.
  const agent = new Agent({ keepAlive: true });
  const answered = new Promise<Answer>((resolve, reject) => {
    const bytes = Buffer.from(body);
    const sent = method === "GET" ? {} : { "content-length": bytes.length };
    const sending = request(url + path, { method, agent, headers: { ...headers, ...sent } }, (response) => {
      let text = "";
      response.setEncoding("utf8");
      response.on("data", (chunk: string) => {
        // Responses with rows are long, so only their beginning is stored.
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
