import { describe, expect, test } from "vitest";
import { createLog } from "../../service/log.ts";
import type { ObjectStore } from "../../service/storage/object-store.ts";
import type { Storage } from "../../service/storage/storage.ts";
import { openStore } from "../../service/store/open.ts";
import { claimTask, completeTask, countTasks, insertTask, listDueTasks, type Task } from "../../service/store/tasks.ts";
import { createWorker, type TaskHandler, type Worker } from "../../service/tasks/worker.ts";
import { commit, declareTable, startTestCatalog } from "../support/catalog.ts";
import { createTestDatabase } from "../support/database.ts";

const none: TaskHandler = async () => undefined;

/** Starts several processes over one database, each with a separate connection and worker. */
async function startWorkers(handlers: readonly TaskHandler[]) {
  const { database, drop } = await createTestDatabase();
  const stores = await Promise.all(handlers.map(() => openStore(database)));
  const workers = handlers.map((purge, index): Worker => {
    const store = stores[index];
    if (store === undefined) throw new Error("each worker has a store");
    const others = {
      finish: none,
      adopt: none,
      forget: none,
      retain: none,
      automate: none,
      end_record: none,
      record_columns: none,
    };
    return createWorker({ store, log: createLog("silent"), handlers: { ...others, purge } });
  });
  const [store] = stores;
  if (store === undefined) throw new Error("there is one worker at least");
  return {
    store,
    workers,
    async [Symbol.asyncDispose]() {
      await Promise.all(workers.map((worker) => worker.stop()));
      for (const each of stores) await each[Symbol.asyncDispose]();
      await drop();
    },
  };
}

const purge = (subject: string): Task => ({ kind: "purge", subject });

describe("deferred work", () => {
  test("is done once, by one of the processes that share the database", async () => {
    const done: string[] = [];
    const handler: TaskHandler = async (subject) => {
      await new Promise(setImmediate);
      done.push(subject);
      return undefined;
    };
    await using running = await startWorkers([handler, handler, handler]);
    const subjects = Array.from({ length: 30 }, (_, index) => String(index));
    await running.store.write(async (session) => {
      // A duplicate insertion is the same task.
      for (const subject of [...subjects, ...subjects]) await insertTask(session, purge(subject));
    });
    await Promise.all(running.workers.map((worker) => worker.drain()));
    expect(done.toSorted()).toEqual(subjects.toSorted());
    expect(await listDueTasks(running.store.read, 10)).toEqual([]);
  });

  test("is retried later when it fails, delays no other work, and is counted", async () => {
    const done: string[] = [];
    await using running = await startWorkers([
      async (subject) => {
        if (subject === "dead bucket") throw new Error("the bucket is dead");
        done.push(subject);
        return undefined;
      },
    ]);
    const { store, workers } = running;
    await store.write(async (session) => {
      for (const subject of ["dead bucket", "a", "b", "c", "d", "e"]) await insertTask(session, purge(subject));
    });
    for (const worker of workers) await worker.drain();
    expect(done.toSorted()).toEqual(["a", "b", "c", "d", "e"]);
    expect(await listDueTasks(store.read, 10)).toEqual([]);
    expect((await countTasks(store.read)).find(({ kind }) => kind === "purge")).toMatchObject({ due: 0, failing: 1 });
  });

  test("leaves room for tasks of other kinds while many tasks of one kind wait for a slow store", async () => {
    const { promise: released, resolve: release } = Promise.withResolvers<void>();
    let [waiting, most] = [0, 0];
    const slow: TaskHandler = async () => {
      waiting += 1;
      most = Math.max(most, waiting);
      await released;
      waiting -= 1;
    };
    await using running = await startWorkers([slow]);
    const [{ store }, [worker]] = [running, running.workers];
    await store.write(async (session) => {
      for (let index = 0; index < 20; index += 1) await insertTask(session, purge(String(index)));
    });
    worker?.wake();
    await expect.poll(() => waiting).toBeGreaterThan(2);
    await store.write((session) => insertTask(session, { kind: "automate", subject: "table" }));
    worker?.wake();
    await expect
      .poll(async () => (await countTasks(store.read)).find(({ kind }) => kind === "automate"))
      .toMatchObject({ due: 0 });
    release();
    await worker?.drain();
    expect([most, await listDueTasks(store.read, 1)]).toEqual([3, []]);
  });

  test("waits for its time", async () => {
    const done: string[] = [];
    await using running = await startWorkers([
      async (subject) => {
        done.push(subject);
        return undefined;
      },
    ]);
    const { store, workers } = running;
    await store.write((session) => insertTask(session, purge("later"), 60_000));
    await store.write((session) => insertTask(session, purge("now")));
    for (const worker of workers) await worker.drain();
    expect(done).toEqual(["now"]);
  });

  test("is done although the clock was set back by a day while it waited", async () => {
    const { url, database, drop } = await createTestDatabase();
    const store = await openStore(database);
    const waiting: Task = { kind: "end_record", subject: JSON.stringify(["gone"]) };
    await store.write(async (session) => {
      for (const each of [waiting, purge("0")]) await insertTask(session, each, 24 * 3_600_000);
    });
    const running = await startTestCatalog({ TILTYARD_DATABASE_URL: url });
    const kinds = () => store.read.db.selectFrom("tasks").select("kind").where("kind", "<>", "retain").execute();
    await expect.poll(kinds).toEqual([{ kind: "purge" }]);
    await running.stop();
    await store[Symbol.asyncDispose]();
    await drop();
  });

  test.each([
    ["its claim expired", 0],
    ["the clock was set back by a day", 24 * 3_600_000],
  ])("continues elsewhere after %s, and ignores the outcome of the former holder", async (_, claimedForMs) => {
    const done: string[] = [];
    await using running = await startWorkers([
      async (subject) => {
        done.push(subject);
        return undefined;
      },
    ]);
    const { store, workers } = running;
    await store.write((session) => insertTask(session, purge("table")));
    // This process is stopped right after it claimed the task, for longer than its lease.
    const stopped = { ...purge("table"), claim: "stopped", attempts: 1 };
    expect(await store.write((session) => claimTask(session, stopped, stopped.claim))).toBe(true);
    await store.write(({ db }) =>
      db
        .updateTable("tasks")
        .set({ claimedUntil: Date.now() + claimedForMs })
        .execute(),
    );
    const taken = { ...stopped, claim: "taken over", attempts: 2 };
    expect(await store.write((session) => claimTask(session, taken, taken.claim))).toBe(true);
    await store.write((session) => completeTask(session, stopped));
    expect(await store.write((session) => claimTask(session, stopped, "a third"))).toBe(false);
    for (const worker of workers) await worker.drain();
    expect(done).toEqual([]);
    await store.write((session) => completeTask(session, taken));
    expect((await countTasks(store.read)).find(({ kind }) => kind === "purge")).toMatchObject({ due: 0 });
  });
});

describe("slow deletions of dropped tables", () => {
  test("hold up neither an answer, nor other requests, nor each other", async () => {
    let release = () => {};
    const released = new Promise<void>((resolve) => {
      release = resolve;
    });
    const slow = (store: ObjectStore): ObjectStore => ({
      ...store,
      deleteFolder: async (folder, proceed) => {
        await released;
        await store.deleteFolder(folder, proceed);
      },
    });
    const wrapStorage = (storage: Storage): Storage => ({ at: async (location) => slow(await storage.at(location)) });
    const catalog = await startTestCatalog({}, { wrapStorage });
    const kept = await declareTable(catalog);
    await commit(catalog, kept, 1);
    const dropped = await Promise.all(Array.from({ length: 8 }, () => declareTable(catalog)));
    for (const table of dropped) expect((await catalog.call("dropTable", { id: table.id })).status).toBe(200);
    expect((await catalog.call("createTableTag", { id: kept.id, tag: "t", version: 1 })).status).toBe(200);
    const { tables } = (await catalog.call("listAllTables", { include_declared: true })).body;
    expect(tables).toEqual([kept.id.join("$")]);
    release();
    const metrics = async () => (await catalog.fetch("/metrics")).text();
    await expect.poll(metrics).toContain('tiltyard_tasks_due{kind="purge"} 0');
    await catalog.stop();
  });
});
