import cluster from "node:cluster";
import { developmentKeyFile } from "../auth/reserved-keys.ts";
import { type Config, readConfig } from "../config.ts";
import { canShare } from "../http/port.ts";
import { createLog, flushLog, type Log, openLogOutput } from "../log.ts";
import { endInTime } from "../processes/end-in-time.ts";
import { joinGroup } from "../processes/group.ts";
import { processesFor, thisMachine } from "../processes/how-many.ts";
import { supervise } from "../processes/supervisor.ts";
import { describeDatabase } from "../store/database.ts";

/** Four times as many as libuv has by itself: they wait for the disk most of the time. */
const poolThreads = 16;

/** Runs the catalog until the process is told to stop, in as many processes as the settings and the machine say. */
export async function serve(): Promise<void> {
  // libuv reads it when its pool is first used. The processes that this one starts inherit it.
  process.env.UV_THREADPOOL_SIZE ??= String(poolThreads);
  const config = readConfig(process.env);
  if (cluster.isWorker) return serveInGroup(config);
  const machine = thisMachine();
  const { processes = processesFor(machine) } = config;
  return processes > 1 && canShare(machine.platform) ? superviseAll(config, processes) : serveAlone(config, processes);
}

async function serveAlone(config: Config, processes: number): Promise<void> {
  const log = createLog(config.logLevel);
  warnOfSettings(config, log);
  if (processes > 1) log.warn(`TILTYARD_PROCESSES is ${processes}, but on ${process.platform} one process serves`);
  const { startService } = await import("../start.ts");
  const service = await startService(config, log);
  const stop = async (signal: string) => {
    log.info({ signal }, "stopping");
    endInTime(log);
    await service.stop();
    log.info("stopped");
    await flushLog(log);
  };
  // A second signal ends the process at once, as it does by default.
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, stop);
  process.stderr.write(welcome(config, service.url));
}

/** Starts the processes that serve, and supervises them. */
async function superviseAll(config: Config, count: number): Promise<void> {
  const output = openLogOutput(config.logLevel);
  const { log } = output;
  warnOfSettings(config, log);
  const hasWriter = config.database.kind === "sqlite";
  process.exitCode = await supervise({ ...config, count, hasWriter, output }, (url) =>
    process.stderr.write(welcome(config, url)),
  );
  log.info("stopped");
  await flushLog(log);
}

/** Serves as one of several processes. */
async function serveInGroup(config: Config): Promise<void> {
  const log = createLog(config.logLevel);
  const group = await joinGroup();
  const { startService } = await import("../start.ts");
  const service = await startService(partOf(config, group.count), log, {}, group);
  group.ready(service.url);
  await group.stopped;
  await service.stop();
  await flushLog(log);
  process.disconnect();
}

/** The connections to a database that is shared are those of all processes together. */
function partOf(config: Config, count: number): Config {
  const { database } = config;
  if (database.kind === "sqlite") return config;
  return { ...config, database: { ...database, connectionsMax: Math.ceil(database.connectionsMax / count) } };
}

function warnOfSettings({ unknownVariables }: Config, log: Log): void {
  for (const name of unknownVariables) log.warn(`${name} is set, but there is no such setting`);
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
