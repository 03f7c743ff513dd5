/** Starts a PostgreSQL for tests in other languages, prints the URL of its database, and ends with its standard input. */
import { once } from "node:events";
import { startPostgres } from "./postgres-server.ts";

const server = await startPostgres();
process.stdout.write(`${server.urlOf("postgres")}\n`);
await once(process.stdin.resume(), "end");
await server.destroy();
