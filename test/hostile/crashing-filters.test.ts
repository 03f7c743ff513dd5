/** A reader continuously sends filters that end the process of the Lance library, while other clients write. */
import { tableToIPC } from "apache-arrow";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { measure, type NextRequest } from "../bench/load.ts";
import { arrowStream, films, filmTable } from "../support/rows.ts";
import { kept } from "./kept.ts";
import { startWatchedService, type WatchedService } from "./service.ts";

const memoryMiB = 400;
const rowCount = 20_000;
/** Each batch of this filter needs 600 MB, more than the process may have. The bounds of expressions allow it. */
const filter = "length(repeat(title, 60000)) > 0";
const table = `/v1/table/${kept.namespace}%24`;

let service: WatchedService;
const post = (path: string, body: string | Uint8Array, key = service.keys.admin) =>
  service.send({ method: "POST", path, body, headers: { "x-api-key": key } });

beforeAll(async () => {
  service = await startWatchedService({ TILTYARD_ROWS_MEMORY: `${memoryMiB}` });
  const rows = filmTable(Array.from({ length: rowCount }, (_, id) => ({ id, title: "0123456789" })));
  expect((await post(`${table}long/create`, tableToIPC(rows, "stream"))).status).toBe(200);
  expect((await post(`${table}written/create`, arrowStream(films))).status).toBe(200);
});
afterAll(() => service[Symbol.asyncDispose]());

/** Sends crashing filters one after the other. @returns A function that ends them and returns the number of each status. */
function attack(): () => Promise<ReadonlyMap<number, number>> {
  const statuses = new Map<number, number>();
  let isOver = false;
  const running = (async () => {
    while (!isOver) {
      const { status } = await post(
        `${table}long/count_rows`,
        JSON.stringify({ predicate: filter }),
        service.keys.reader,
      );
      statuses.set(status, (statuses.get(status) ?? 0) + 1);
    }
  })();
  return async () => {
    isOver = true;
    await running;
    return statuses;
  };
}

describe("filters that end the process of the library", () => {
  test("let the writes of others succeed", async () => {
    const end = attack();
    const writes = 30;
    const inserted: number[] = [];
    for (let write = 0; write < writes; write += 1) {
      expect((await post(`${table}declared_${write}/declare`, "{}")).status).toBe(200);
      inserted.push((await post(`${table}written/insert`, arrowStream(films))).status);
    }
    const attacks = await end();
    process.stderr.write(`crashing filters: ${JSON.stringify([...attacks])}, inserts: ${inserted.join()}\n`);
    // The first crash hits the shared process; afterwards the filters of the reader run apart.
    expect(inserted.filter((status) => status !== 200).length).toBeLessThanOrEqual(1);
    // The insert that it interrupts has changed nothing (503), or its rows were already committed (409).
    expect(inserted.filter((status) => ![200, 409, 503].includes(status))).toEqual([]);
    expect([...attacks.keys()].filter((status) => ![400, 503].includes(status))).toEqual([]);
    expect(attacks.get(400)).toBeGreaterThan(0);
  });

  /** A busy machine is slow at times, so one good attempt suffices. */
  const attempts = 3;
  const connections = 4;
  let declared = 0;
  /** The writes whose latency counts. Each connection inserts into a table of its own. */
  const writes: Readonly<Record<string, NextRequest>> = {
    declares: () => {
      declared += 1;
      return { method: "POST", path: `${table}fast_${declared}/declare`, body: "{}" };
    },
    inserts: (connection) => ({
      method: "POST",
      path: `${table}inserted_${connection}/insert`,
      body: arrowStream(films),
    }),
  };
  test.each(Object.entries(writes))("leave the others as fast as they were: %s", async (name, next) => {
    for (let connection = 0; connection < connections; connection += 1)
      await post(`${table}inserted_${connection}/create?mode=ExistOk`, arrowStream(films));
    const target = { url: service.url, pid: service.pid, headers: { "x-api-key": service.keys.admin } };
    const load = async () => (await measure(target, { connections, seconds: 5 }, next)).p99Ms;
    await load();
    const ratios: number[] = [];
    for (let attempt = 0; attempt < attempts && !ratios.some((ratio) => ratio <= 2); attempt += 1) {
      const alone = await load();
      const end = attack();
      const beside = await load().finally(end);
      const p99 = `p99 of ${name} ${alone.toFixed(1)} ms alone, ${beside.toFixed(1)} ms beside them`;
      process.stderr.write(`crashing filters: ${p99}\n`);
      ratios.push(beside / alone);
    }
    expect(Math.min(...ratios), "p99 beside them, by p99 alone").toBeLessThanOrEqual(2);
  });
});
