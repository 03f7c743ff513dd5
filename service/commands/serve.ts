import { closest } from "@tiltyard/protocol";
import { onNpmExit } from "@tiltyard/protocol/parent";
import { developmentKeyFile } from "../auth/reserved-keys.ts";
import { type Config, readConfig, settingNames } from "../config.ts";
import { createLog, flushLog, type Log } from "../log.ts";
import { describeDatabase } from "../store/database.ts";

/** The size of libuv's thread pool. Each concurrent commit waits for several syncs of the disk. */
const poolThreads = 16;
/** The timeout of a shutdown. Kubernetes kills a pod of the catalog 35 s after SIGTERM. */
const stopTimeoutMs = 32_000;

export async function serve(): Promise<void> {
  // libuv reads the variable at the first use of its pool.
  process.env.UV_THREADPOOL_SIZE ??= String(poolThreads);
  const config = readConfig(process.env);
  const log = createLog(config.logLevel);
  for (const name of config.unknownVariables) {
    const meant = closest(name, settingNames);
    const advice = meant === undefined ? "" : `. Did you mean ${meant}?`;
    log.warn(`${name} is set, but no such setting exists${advice}`);
  }
  const { startService } = await import("../start.ts");
  const service = await startService(config, log);
  let isStopping = false;
  const stop = async (reason: string) => {
    // npm exits after the signal that it shares with its child.
    if (isStopping) return;
    isStopping = true;
    log.info({ reason }, "stopping");
    setTimeout(() => kill(log), stopTimeoutMs).unref();
    await service.stop();
    log.info("stopped");
    await flushLog(log);
  };
  // A second signal terminates the process immediately, as by default.
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, stop);
  onNpmExit(() => void stop("npm ended"));
  process.stderr.write(welcome(config, service.url));
}

/** Kills a process that does not stop in time. All acknowledged changes are durable. */
function kill(log: Log): void {
  log.error("the service did not stop in time and is killed; all acknowledged commits are durable");
  // A standard output without a reader would also delay an exit.
  setImmediate(() => process.kill(process.pid, "SIGKILL"));
}

function welcome({ auth, dataDir, database, warehouse }: Config, url: string): string {
  const lines = [
    `Tiltyard catalog at ${url}`,
    `  database   ${describeDatabase(database)}`,
    `  warehouse  ${warehouse.uri}`,
    `  console    ${url}/console`,
    `  API        ${url}/docs`,
  ];
  if (auth.mode === "oidc") return `${[...lines, `  tokens     from ${auth.issuer}`].join("\n")}\n`;
  const keyFile = developmentKeyFile(dataDir);
  return `${lines.join("\n")}

Development authentication is on. Call the catalog with the key in ${keyFile}:

  curl -H "x-api-key: $(cat ${keyFile})" '${url}/v1/namespace/$/list'

`;
}
