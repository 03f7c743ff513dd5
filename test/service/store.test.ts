import { CatalogError } from "@tiltyard/protocol";
import { afterAll, describe, expect, test, vi } from "vitest";
import { parseLocation } from "../../service/storage/location.ts";
import { findBranch } from "../../service/store/branches.ts";
import { describeDatabase } from "../../service/store/database.ts";
import { findNamespace, insertNamespace, listChildNamespaces } from "../../service/store/namespaces.ts";
import { openStore } from "../../service/store/open.ts";
import { insertTable, listAllTables, listTables } from "../../service/store/tables.ts";
import { findVersion, insertVersion } from "../../service/store/versions.ts";
import { exclusively } from "../../service/tasks/lease.ts";
import { createTestDatabase, databaseKind, executeSql } from "../support/database.ts";
import { versionRecord } from "../support/version-record.ts";

const drops: (() => Promise<void>)[] = [];
afterAll(async () => {
  for (const drop of drops) await drop();
});

async function newDatabase() {
  const { database, drop } = await createTestDatabase();
  drops.push(drop);
  return database;
}

const namespace = (name: string) => ({ identifier: [name], properties: {} });

const numbered = (index: number) => `ns${String(index).padStart(2, "0")}`;

describe(`the store over ${databaseKind}`, () => {
  test("rolls back the one of many concurrent writes that throws, and keeps the others", async () => {
    await using store = await openStore(await newDatabase());
    const writes = Array.from({ length: 40 }, (_, index) =>
      store.write(async (session) => {
        await insertNamespace(session, namespace(numbered(index)));
        if (index % 4 === 0) throw new CatalogError("InvalidInput", `refused ${index}`);
        return index;
      }),
    );
    const settled = await Promise.allSettled(writes);
    const kept = settled.flatMap((each) => (each.status === "fulfilled" ? [each.value] : []));
    expect(kept).toEqual(Array.from({ length: 40 }, (_, index) => index).filter((index) => index % 4 !== 0));
    const names = await listChildNamespaces(store.read, [], "", 100);
    expect(names).toEqual(kept.map(numbered));
  });

  test("lets readers see a write once it is answered", async () => {
    await using store = await openStore(await newDatabase());
    await store.write((session) => insertNamespace(session, namespace("a")));
    expect(await store.write((session) => findNamespace(session, ["a"]))).toEqual(namespace("a"));
    expect(await findNamespace(store.read, ["a"])).toEqual(namespace("a"));
  });

  test("lets nothing get lost of writes that change the same row at once", async () => {
    await using store = await openStore(await newDatabase());
    const table = await store.write(async (session) => {
      await insertNamespace(session, namespace("n"));
      return insertTable(session, { identifier: ["n", "t"], location: parseLocation("file:///t"), properties: {} });
    });
    const committed = await Promise.all(
      Array.from({ length: 20 }, () =>
        store.write(async (session) => {
          const version = ((await findBranch(session, { table, branch: "main" }))?.highestVersion ?? 0) + 1;
          await insertVersion(session, versionRecord(table.id, version));
          return version;
        }),
      ),
    );
    expect(committed.toSorted((a, b) => a - b)).toEqual(Array.from({ length: 20 }, (_, index) => index + 1));
  });

  test("holds what a write has looked for in a table that it locks", async () => {
    await using store = await openStore(await newDatabase());
    await store.write((session) => insertNamespace(session, namespace("n")));
    const counts = await Promise.all(
      Array.from({ length: 20 }, (_, index) =>
        store.write(
          async (session) => {
            const before = await listTables(session, ["n"], "", { limit: 100, includeDeclared: true });
            await insertTable(session, {
              identifier: ["n", `t${index}`],
              location: parseLocation(`file:///t${index}`),
              properties: {},
            });
            return before.length;
          },
          { locking: "tables" },
        ),
      ),
    );
    expect(counts.toSorted((a, b) => a - b)).toEqual(Array.from({ length: 20 }, (_, index) => index));
  });

  test("reports an existing object to its second creator", async () => {
    await using store = await openStore(await newDatabase());
    const outcomes = await Promise.all(
      Array.from({ length: 12 }, () =>
        store.write(async (session) => {
          if ((await findNamespace(session, ["one"])) !== undefined) return "there";
          await insertNamespace(session, namespace("one"));
          return "made";
        }),
      ),
    );
    expect(outcomes.filter((outcome) => outcome === "made")).toHaveLength(1);
  });

  test("rolls back a write that breaks a constraint, as a bug and not as a conflict", async () => {
    await using store = await openStore(await newDatabase());
    await expect(
      store.write((session) => insertNamespace(session, { identifier: ["no", "parent"], properties: {} })),
    ).rejects.toThrow(/foreign key/i);
    expect(await findNamespace(store.read, ["no", "parent"])).toBeUndefined();
  });

  test("keeps integers as large as the protocol has them, and every text but what cannot be stored", async () => {
    await using store = await openStore(await newDatabase());
    const record = await store.write(async (session) => {
      await insertNamespace(session, namespace("n"));
      const { id } = await insertTable(session, {
        identifier: ["n", "t"],
        location: parseLocation("file:///t"),
        properties: {},
      });
      const record = {
        ...versionRecord(id, Number.MAX_SAFE_INTEGER),
        manifestSize: Number.MAX_SAFE_INTEGER,
        timestampMillis: 1_795_000_000_000,
        metadata: { "\u0000": "\ud800 \u{1F600}" },
      };
      await insertVersion(session, record);
      return record;
    });
    expect(await findVersion(store.read, { table: { id: record.tableId }, branch: "main" }, record.version)).toEqual(
      record,
    );
  });

  test("sorts names by their bytes", async () => {
    await using store = await openStore(await newDatabase());
    const names = ["B", "Z", "_", "a", "a b", "a-b", "ab", "é", "z", "\u{1F600}"];
    await store.write(async (session) => {
      for (const name of names.toReversed()) await insertNamespace(session, namespace(name));
    });
    expect(await listChildNamespaces(store.read, [], "", 100)).toEqual(
      names.toSorted((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b))),
    );
    expect(await listChildNamespaces(store.read, [], "a b", 2)).toEqual(["a-b", "ab"]);
  });

  test("continues behind a table that was deleted", async () => {
    await using store = await openStore(await newDatabase());
    await store.write(async (session) => {
      await insertNamespace(session, namespace("n"));
      for (const name of ["a", "b", "c"])
        await insertTable(session, {
          identifier: ["n", name],
          location: parseLocation(`file:///${name}`),
          properties: {},
        });
    });
    expect(await listAllTables(store.read, ["n", "aa"], { limit: 10, includeDeclared: true })).toEqual([
      ["n", "b"],
      ["n", "c"],
    ]);
  });

  test("runs exclusive work of a key one after the other, also of two that share the database", async () => {
    const database = await newDatabase();
    await using first = await openStore(database);
    await using second = await openStore(database);
    let inside = 0;
    let most = 0;
    const work = async () => {
      inside += 1;
      most = Math.max(most, inside);
      await findNamespace(first.read, []);
      inside -= 1;
    };
    await Promise.all(
      Array.from({ length: 10 }, (_, index) => exclusively(index % 2 === 0 ? first : second, "key", work)),
    );
    expect(most).toBe(1);
    await expect(exclusively(first, "key", () => Promise.reject(new Error("broken")))).rejects.toThrow("broken");
    expect(await exclusively(second, "key", async () => "again")).toBe("again");
  });

  test("frees the key of exclusive work at its end, although a renewal arrives late", async () => {
    await using store = await openStore(await newDatabase());
    const { promise: arrival, resolve: arrive } = Promise.withResolvers<void>();
    let isLate = false;
    const write: typeof store.write = async (...args) => {
      if (isLate) {
        isLate = false;
        await arrival;
      }
      return store.write(...args);
    };
    vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
    try {
      const done = exclusively({ ...store, read: store.read, write }, "key", async () => {
        isLate = true;
        vi.advanceTimersByTime(10_000);
      });
      // A release would be done by then.
      for (let turn = 0; turn < 10; turn += 1) await store.write(async () => undefined);
      arrive();
      await done;
    } finally {
      vi.useRealTimers();
    }
    expect(await exclusively(store, "key", async () => "free")).toBe("free");
  });

  test("finishes accepted work before it closes", async () => {
    const database = await newDatabase();
    const store = await openStore(database);
    const write = store.write((session) => insertNamespace(session, namespace("last")));
    await store[Symbol.asyncDispose]();
    await write;
    await using again = await openStore(database);
    expect(await findNamespace(again.read, ["last"])).toEqual(namespace("last"));
  });

  test("keeps its rows when it is opened again", async () => {
    const database = await newDatabase();
    {
      await using store = await openStore(database);
      await store.write((session) => insertNamespace(session, namespace("kept")));
    }
    await using store = await openStore(database);
    expect(await listChildNamespaces(store.read, [], "", 10)).toEqual(["kept"]);
  });

  test("refuses the database of an earlier checkout and says how to carry its tables over", async () => {
    const database = await newDatabase();
    await (await openStore(database))[Symbol.asyncDispose]();
    await executeSql(database, "update kysely_migration set name = '0001-initial'");
    const refused = expect(openStore(database)).rejects;
    await refused.toThrow(`The catalog cannot use its database at ${describeDatabase(database)}: an earlier checkout`);
    await refused.toThrow(/register .* tables of the warehouse|delete it/);
  });
});
