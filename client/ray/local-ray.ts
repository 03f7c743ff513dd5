import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { isAtLeast, rayVersionMin, tokenRayVersionMin } from "@tiltyard/platform";
import { z } from "zod";
import { unusedPort } from "../unused-port.ts";
import { Companion } from "./companion.ts";
import { Dashboard } from "./dashboard.ts";
import { JobsApi } from "./jobs.ts";
import { createRayFolder, removeOrphanedRays, removeRayFolder } from "./ray-folder.ts";

/** A failure to start Ray on this machine. */
export class LocalRayError extends Error {
  override readonly name = "LocalRayError";
}

export interface LocalRayOptions {
  /** The environment of Ray and its jobs. `PATH` determines which Ray and which `python` they use. */
  readonly env: NodeJS.ProcessEnv;
  /** The number of CPUs; that of the machine when absent. */
  readonly numCpus?: number;
  /** The token of its clients; a random one when absent. */
  readonly token?: string | undefined;
  readonly signal?: AbortSignal;
}

/** A Ray on this machine with the lifetime of its scope. */
export interface LocalRay extends AsyncDisposable {
  readonly version: string;
  readonly dashboardUrl: string;
  /** The folder of its files, which is deleted when it stops. */
  readonly folder: string;
  readonly jobs: JobsApi;
  /** The token that Ray requires of its clients; undefined for a Ray without token authentication. */
  readonly token: string | undefined;
  /** Reports whether it died or was stopped. */
  readonly hasEnded: boolean;
  /** Returns how its program ended, such as `SIGKILL`. */
  readonly ending: string;
  /** Returns the end of its output, which shows why it died. */
  readonly printed: string;
  /**
   * Returns why it has lost its node, which runs the jobs; undefined if it has one or does not respond. Its other
   * processes outlive the node if one of the node's agents was killed.
   */
  nodeLoss(): Promise<string | undefined>;
}

const startTimeoutMs = 120_000;
/**
 * The time in which Ray should stop by itself, before its processes are killed. Service managers wait ten seconds or
 * more before they kill a program.
 */
const stopTimeoutMs = 3_000;
const pollMs = 100;
const install = "run pip install 'ray[default]', and activate its environment";
/** The ports that are equal for every Ray of a machine unless they are set explicitly. Another Ray may be running. */
const ports = [
  "port",
  "dashboard-port",
  "ray-client-server-port",
  "runtime-env-agent-port",
  "metrics-export-port",
] as const;

/**
 * Starts the Ray on the `PATH` for this process alone, and ends those whose processes died. It has separate ports and a
 * token, because Ray runs the code of every client that reaches them.
 *
 * @throws LocalRayError
 */
export async function startLocalRay({ env, numCpus, signal, ...options }: LocalRayOptions): Promise<LocalRay> {
  const version = await localRayVersion(env);
  const { token = isAtLeast(version, tokenRayVersionMin) ? randomBytes(32).toString("hex") : undefined } = options;
  const numbers = new Map<string, number>();
  for (const name of ports) numbers.set(name, await unusedPort());
  const dashboardUrl = `http://127.0.0.1:${numbers.get("dashboard-port")}`;
  await removeOrphanedRays();
  signal?.throwIfAborted();
  const folder = await createRayFolder();
  const command = [
    ...["ray", "start", "--head", "--block", "--include-dashboard=true", "--dashboard-host=127.0.0.1"],
    ...["--disable-usage-stats", `--temp-dir=${folder}`],
    ...[...numbers].map(([name, port]) => `--${name}=${port}`),
    // If the agent's port is in use, Ray continues without its agent and then accepts no jobs.
    "--dashboard-agent-listen-port=0",
    ...(numCpus === undefined ? [] : [`--num-cpus=${numCpus}`]),
  ];
  const companion = new Companion(command, {
    ...env,
    ...(token !== undefined && { RAY_AUTH_MODE: "token", RAY_AUTH_TOKEN: token }),
  });
  const stop = async () => {
    const ended = companion[Symbol.asyncDispose]();
    await Promise.race([ended, sleep(stopTimeoutMs, undefined, { ref: false })]);
    await removeRayFolder(folder);
    await ended;
  };
  try {
    await answering(dashboardUrl, companion, signal);
  } catch (error) {
    await stop();
    throw error;
  }
  return {
    version,
    dashboardUrl,
    folder,
    token,
    get hasEnded() {
      return companion.hasEnded;
    },
    get ending() {
      return companion.ending;
    },
    get printed() {
      return companion.printed;
    },
    nodeLoss: () => nodeLoss(new Dashboard(dashboardUrl, token)),
    jobs: new JobsApi(dashboardUrl, token),
    [Symbol.asyncDispose]: stop,
  };
}

/** Returns the version of Ray on the PATH. @throws LocalRayError if it is missing or too old. */
export async function localRayVersion(env: NodeJS.ProcessEnv): Promise<string> {
  const { stdout } = await promisify(execFile)("ray", ["--version"], { env }).catch((cause) => {
    const problem = cause.code === "ENOENT" ? "ray is not on the PATH" : "the ray on the PATH does not run";
    throw new LocalRayError(`${problem}: ${install}`, { cause });
  });
  const version = /\d+\.\d+\.\d+/.exec(stdout)?.[0];
  if (version === undefined) throw new LocalRayError(`ray --version printed no version: ${stdout.trim()}`);
  if (isAtLeast(version, rayVersionMin)) return version;
  throw new LocalRayError(`Ray must be ${rayVersionMin.join(".")} or later, and this one is ${version}: ${install}`);
}

/** The response of Ray's State API, with the only node of a local Ray. */
const Nodes = z.object({
  data: z.object({
    result: z.object({ result: z.array(z.object({ state: z.string(), state_message: z.string().nullish() })) }),
  }),
});

async function nodeLoss(dashboard: Dashboard): Promise<string | undefined> {
  const answer = await dashboard.read("/api/v0/nodes", Nodes).catch(() => undefined);
  const [node] = answer?.data.result.result ?? [];
  return node?.state === "DEAD" ? (node.state_message ?? "its node is dead") : undefined;
}

async function answering(url: string, companion: Companion, signal: AbortSignal | undefined): Promise<void> {
  const { request } = await import("undici");
  const deadline = Date.now() + startTimeoutMs;
  for (;;) {
    const timeoutMs = Math.max(deadline - Date.now(), pollMs);
    const answers = await request(`${url}/api/healthz`, { signal: signal ?? null, headersTimeout: timeoutMs }).then(
      async ({ statusCode, body }) => {
        await body.dump();
        // A 401 means that Ray requires its token and is thus running.
        return statusCode < 500;
      },
      () => false,
    );
    if (answers) return;
    if (companion.hasEnded) throw new LocalRayError(`Ray did not start: ${companion.printed.trim()}\n${install}`);
    if (Date.now() > deadline) throw new LocalRayError(`Ray did not respond in time: ${companion.printed.trim()}`);
    await sleep(pollMs, undefined, { signal });
  }
}
