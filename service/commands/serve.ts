import { developmentKeyFile } from "../auth/development-issuer.ts";
import { type Config, readConfig } from "../config.ts";
import { createLog, flushLog } from "../log.ts";
import { startService } from "../start.ts";
import { describeDatabase } from "../store/database.ts";

/** Runs the catalog until the process is told to stop. */
export async function serve(): Promise<void> {
  const config = readConfig(process.env);
  const log = createLog(config.logLevel);
  for (const name of config.unknownVariables) log.warn(`${name} is set, but there is no such setting`);
  const service = await startService(config, log);
  const stop = async (signal: string) => {
    log.info({ signal }, "stopping");
    await service.stop();
    log.info("stopped");
    await flushLog(log);
  };
  // A second signal ends the process at once, as it does by default.
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, stop);
  process.stderr.write(welcome(config, service.url));
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
