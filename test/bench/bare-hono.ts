import cluster from "node:cluster";
import type { AddressInfo } from "node:net";
import { serve } from "@hono/node-server";
import { Hono } from "hono";

/** What the answer to a description of a table may look like. */
const answer = {
  table: "t_000",
  namespace: ["bench"],
  location: "file:///bench/warehouse/bench/t_000-0123456789ab.lance",
  properties: {},
  managed_versioning: true,
};

// The framework and nothing else, in as many processes as the argument says, until standard input ends.
const processes = Number(process.argv[2]);
if (cluster.isPrimary && processes > 1) {
  const workers = Array.from({ length: processes }, () => cluster.fork());
  let listening = 0;
  cluster.on("listening", (_, { port }) => {
    listening += 1;
    if (listening === workers.length) announce(port);
  });
} else {
  const app = new Hono().post("/v1/table/:id/describe", (context) => context.json(answer));
  serve({ fetch: app.fetch, hostname: "127.0.0.1", port: 0 }, ({ port }: AddressInfo) => {
    if (cluster.isPrimary) announce(port);
  });
}
if (cluster.isPrimary) process.stdin.resume().once("end", () => process.exit());

function announce(port: number): void {
  process.stderr.write(`http://127.0.0.1:${port}\n`);
}
