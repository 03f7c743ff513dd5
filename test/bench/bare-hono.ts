import type { AddressInfo } from "node:net";
import { serve } from "@hono/node-server";
import { Hono } from "hono";

/** A response with the size of a table's description. */
const response = {
  table: "t_000",
  namespace: ["bench"],
  location: "file:///bench/warehouse/bench/t_000-0123456789ab.lance",
  properties: {},
  managed_versioning: true,
};

// This server contains nothing but the framework. It runs until standard input ends.
const app = new Hono().post("/v1/table/:id/describe", (c) => c.json(response));
serve({ fetch: app.fetch, hostname: "127.0.0.1", port: 0 }, ({ port }: AddressInfo) => {
  process.stderr.write(`http://127.0.0.1:${port}\n`);
});
process.stdin.resume().once("end", () => process.exit());
