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

// The framework and nothing else, until standard input ends.
const app = new Hono().post("/v1/table/:id/describe", (context) => context.json(answer));
serve({ fetch: app.fetch, hostname: "127.0.0.1", port: 0 }, ({ port }: AddressInfo) => {
  process.stderr.write(`http://127.0.0.1:${port}\n`);
});
process.stdin.resume().once("end", () => process.exit());
