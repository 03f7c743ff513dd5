import { afterAll, beforeAll, expect, test } from "vitest";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";
import { createServiceProcess, type ServiceProcess } from "../support/service-process.ts";

let database: TestDatabase;
let replicas: readonly ServiceProcess[];

beforeAll(async () => {
  database = await createTestDatabase();
  const settings = { TILTYARD_DATABASE_URL: database.url, TILTYARD_RATE_LIMIT: "20" };
  replicas = [1, 2, 3].map(() => createServiceProcess(undefined, settings));
  await Promise.all(replicas.map((replica) => replica.start()));
});
afterAll(async () => {
  await Promise.all(replicas.map((replica) => replica.kill("SIGTERM")));
  await database.drop();
});

test("a rate limit counts the requests of all replicas together", async () => {
  const start = Date.now();
  const answers = await Promise.all(
    Array.from({ length: 90 }, (_, index) => {
      const on = replicas[index % replicas.length];
      return on && fetch(`${on.url()}/v1/namespace/$/exists`, { method: "POST", headers: { "x-api-key": on.key } });
    }),
  );
  const seconds = Math.ceil((Date.now() - start) / 1000) + 1;
  const accepted = answers.filter((answer) => answer?.status === 200).length;
  // Separate counters would accept 60 requests within the first second.
  expect(accepted).toBeGreaterThanOrEqual(20);
  expect(accepted).toBeLessThanOrEqual(20 * seconds);
  const refused = answers.find((answer) => answer?.status === 503);
  expect(Number(refused?.headers.get("retry-after"))).toBeGreaterThan(0);
});
