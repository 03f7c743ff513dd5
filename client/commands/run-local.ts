import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { Companion } from "../ray/companion.ts";
import { startLocalRay } from "../ray/local-ray.ts";
import { type CatalogTarget, catalogTarget } from "./catalog-target.ts";
import { interruptible } from "./interruption.ts";
import { type JobOptions, jobRequest, trackingOf } from "./job-options.ts";
import { findProgram } from "./other-program.ts";
import { type JsonOption, log } from "./output.ts";
import { runJob } from "./run-job.ts";

const catalogStartTimeoutMs = 60_000;
const pollMs = 50;

/**
 * Runs a command on a Ray of this machine and starts a catalog for it if none is specified. The command finds the
 * catalog in TILTYARD_CATALOG_URL and TILTYARD_API_KEY.
 */
export async function runLocally(command: readonly string[], options: JobOptions & JsonOption): Promise<void> {
  await interruptible(async (signal) => {
    const named = catalogTarget(options);
    await using catalog =
      named === undefined ? await startCatalog(signal) : { ...named, [Symbol.asyncDispose]: async () => {} };
    const tracking = trackingOf(options, catalog);
    log("starting Ray on this machine");
    await using ray = await startLocalRay({ env: environmentOf(catalog), signal });
    log(`Ray ${ray.version} is ready; dashboard: ${ray.dashboardUrl}; catalog: ${catalog.url}`);
    await runJob(ray.jobs, jobRequest(command, options), { ...options, tracking, signal });
    log("stopping Ray");
  });
}

function environmentOf({ url, apiKey }: CatalogTarget): NodeJS.ProcessEnv {
  return {
    ...process.env,
    TILTYARD_CATALOG_URL: url,
    ...(apiKey !== undefined && { TILTYARD_API_KEY: apiKey }),
  };
}

/** A catalog that stops when it is disposed. */
interface StartedCatalog extends CatalogTarget, AsyncDisposable {
  /** The file of its development key; undefined if its tokens come from an issuer. */
  readonly keyFile: string | undefined;
  readonly developmentKey: string | undefined;
}

/** Starts the catalog of this folder, by default at a free port. Another catalog may use the same database. */
export async function startCatalog(signal: AbortSignal, port = 0): Promise<StartedCatalog> {
  const settings = { ...process.env, TILTYARD_PORT: String(port) };
  const catalog = new Companion([process.execPath, findProgram("catalog"), "serve"], settings);
  const end = () => catalog[Symbol.asyncDispose]();
  try {
    const { url, keyFile } = await untilListening(catalog, signal);
    const developmentKey = keyFile && readFileSync(keyFile, "utf8").trim();
    const apiKey = process.env.TILTYARD_API_KEY || developmentKey;
    return { url, apiKey, keyFile, developmentKey, [Symbol.asyncDispose]: end };
  } catch (error) {
    await end();
    throw error;
  }
}

/** The lines of a catalog that listens: its URL, and the issuer of its tokens or the file of its development key. */
const listening = /^Tiltyard catalog at (\S+)$[\s\S]*?^(?: {2}tokens .+|Development .+ with the key in (.+):)$/m;

/** Waits until the catalog listens. */
async function untilListening(
  catalog: Companion,
  signal: AbortSignal,
): Promise<Pick<StartedCatalog, "url" | "keyFile">> {
  const deadline = Date.now() + catalogStartTimeoutMs;
  for (;;) {
    const [, url, keyFile] = listening.exec(catalog.printed) ?? [];
    if (url !== undefined) return { url, keyFile };
    if (catalog.hasEnded || Date.now() > deadline)
      throw new Error(`the catalog did not start: ${catalog.printed.trim()}`);
    await sleep(pollMs, undefined, { signal });
  }
}
