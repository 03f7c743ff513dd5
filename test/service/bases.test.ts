import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { beforeAll, describe, expect, test } from "vitest";
import { manifestWith } from "../support/bases.ts";
import { finalName, pathOf, stageManifest, type TestTable, useCatalog } from "../support/catalog.ts";
import { arrowStream, films } from "../support/rows.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

/** The tests commit and read versions with files in folders outside their table. */
const extra = temporaryFolder("tiltyard-bases-");
const catalog = useCatalog({
  TILTYARD_ALLOWED_LOCATIONS: `mine=${extra}/mine,${extra}/all`,
  TILTYARD_DROP_RETENTION: "1h",
});

beforeAll(async () => {
  for (const id of [["mine"], ["victim"]]) await catalog.call("createNamespace", { id });
  const created = await catalog.call("createTable", { id: ["victim", "films"] }, { body: arrowStream(films) });
  expect(created.status).toBe(200);
});

async function declare(key: string, name: string): Promise<TestTable> {
  const id = ["mine", name];
  const { location } = (await catalog.call("declareTable", { id }, { key })).body;
  return { id, location };
}

/** Commits the first version of a table with a folder as its only base. */
async function commit(key: string, table: TestTable, base: string, version = 1) {
  const manifest_path = stageManifest(table, version, { content: manifestWith(base) });
  const request = { id: table.id, version, manifest_path, naming_scheme: "V2" };
  return catalog.call("createTableVersion", request, { key });
}

test("a version with more than 1,000 bases is not committed", async () => {
  const table = await declare(catalog.adminKey, "hoard");
  const base = manifestWith(table.location).subarray(4, -16);
  const commitWith = async (version: number, count: number) => {
    const content = manifestWith(table.location, ...Array.from({ length: count - 1 }, () => [...base]).flat());
    const manifest_path = stageManifest(table, version, { content });
    return (await catalog.call("createTableVersion", { id: table.id, version, manifest_path })).status;
  };
  expect([await commitWith(1, 1_000), await commitWith(2, 1_001)]).toEqual([200, 400]);
});

describe("a version with files outside of its table, as a shallow clone has", () => {
  let source: string;
  beforeAll(async () => {
    source = (await catalog.call("describeTable", { id: ["victim", "films"] })).body.location;
  });

  const bases = (): [string, string][] => [
    ["of another namespace", source],
    ["inside of it", `${source}/data`],
    ["of the whole warehouse", source.replace(/\/victim\/.*/, "")],
    ["of the machine", "/etc"],
  ];
  test("is not committed, alone or in a batch, nor registered", async () => {
    const key = await catalog.keyFor("cloner", { mine: "admin" });
    const table = await declare(key, "clone");
    for (const [name, base] of bases()) {
      const staged = () => ({
        version: 1,
        manifest_path: stageManifest(table, 1, { content: manifestWith(base) }),
        naming_scheme: "V2",
      });
      const statuses = [
        await catalog.call("createTableVersion", { id: table.id, ...staged() }, { key }),
        await catalog.call("batchCreateTableVersions", { entries: [{ id: table.id, ...staged() }] }, { key }),
        await catalog.call(
          "batchCommitTables",
          { operations: [{ create_table_version: { id: table.id, ...staged() } }] },
          { key },
        ),
      ];
      expect([name, statuses.map(({ status }) => status)]).toEqual([name, [400, 400, 400]]);
      for (const { error } of statuses) expect(error?.detail).toContain(`file://${base.replace(/^file:../, "")}`);
    }
    for (const [index, [, base]] of bases().entries()) {
      const folder = `mine/registered-${index}.lance`;
      const versions = `${catalog.dataDir}/warehouse/${folder}/_versions`;
      mkdirSync(versions, { recursive: true });
      writeFileSync(`${versions}/1.manifest`, manifestWith(base));
      const request = { id: ["mine", `registered${index}`], location: folder };
      expect((await catalog.call("registerTable", request, { key })).status).toBe(400);
    }
  });

  test("is not opened for a principal that may not read the other table when it was adopted from storage", async () => {
    const key = await catalog.keyFor("adopter", { mine: "admin" });
    const table = await declare(key, "adopted");
    const versions = `/${pathOf(table)}/_versions`;
    mkdirSync(versions, { recursive: true });
    writeFileSync(`${versions}/${finalName(1)}`, manifestWith(source));
    for (const [operation, request] of [
      ["queryTable", { k: 9 }],
      ["countTableRows", {}],
      ["describeTable", { load_detailed_metadata: true }],
      ["deleteFromTable", { predicate: "true" }],
    ] as const)
      expect([operation, (await catalog.call(operation, { id: table.id, ...request }, { key })).status]).toEqual([
        operation,
        403,
      ]);
  });

  test("is not opened after its manifest was replaced by one with files of the other table", async () => {
    const key = await catalog.keyFor("replacer", { mine: "admin" });
    const table = await declare(key, "replaced");
    // Lance does not open a version with an unknown feature flag, so that the next request opens it again.
    const readerFeatureFlags = [0x48, 0x80, 0x80, 0x01];
    const content = manifestWith(table.location, ...readerFeatureFlags);
    const manifest_path = stageManifest(table, 1, { content });
    await catalog.call("createTableVersion", { id: table.id, version: 1, manifest_path, naming_scheme: "V2" }, { key });
    const count = async () => (await catalog.call("countTableRows", { id: table.id }, { key })).status;
    expect(await count()).toBe(406);
    writeFileSync(`/${pathOf(table)}/_versions/${finalName(1)}`, manifestWith(source));
    expect([await count(), await count()]).toEqual([409, 403]);
  });

  test("is committed by a reader of the other table, and with files of the table itself, as branches have", async () => {
    const key = await catalog.keyFor("reader-of-both", { mine: "writer", victim: "reader" });
    for (const [name, base] of [
      ["both", source],
      ["own", undefined],
    ] as const) {
      const table = await declare(key, name);
      const content = manifestWith(base ?? table.location);
      const manifest_path = stageManifest(table, 1, { content });
      const request = { id: table.id, version: 1, manifest_path, naming_scheme: "V2" };
      expect((await catalog.call("createTableVersion", request, { key })).status).toBe(200);
    }
  });

  test("is refused when its manifest cannot be parsed", async () => {
    const table = await declare(catalog.adminKey, "broken");
    const content = Buffer.concat([Buffer.from([9, 0, 0, 0, 0x92, 0x01, 0xff]), Buffer.alloc(12), Buffer.from("LANC")]);
    const manifest_path = stageManifest(table, 1, { content });
    const { status } = await catalog.call("createTableVersion", {
      id: table.id,
      version: 1,
      manifest_path,
      naming_scheme: "V2",
    });
    expect(status).toBe(400);
  });
});

describe("a base of a table", () => {
  const warehouse = (path: string) => `${catalog.dataDir}/warehouse/${path}`;
  const writer = (name: string) => catalog.keyFor(name, { mine: "writer" });
  const detailOf = async (key: string, table: TestTable, base: string) => {
    const { error } = await commit(key, table, base);
    return error && [error.status, error.detail];
  };

  test("is in a folder in which the caller may create tables", async () => {
    const key = await writer("base-writer");
    const allowed = [warehouse("mine/base"), `file://${extra}/mine/base`];
    for (const [index, base] of allowed.entries())
      expect((await commit(key, await declare(key, `allowed${index}`), base)).status).toBe(200);
    const byAdmin = await declare(catalog.adminKey, "by-admin");
    expect((await commit(catalog.adminKey, byAdmin, warehouse("bases/admin"))).status).toBe(200);

    const table = await declare(key, "refused");
    for (const base of [warehouse("elsewhere/base"), warehouse("victim/base"), `${extra}/all/base`, "/etc/tiltyard"])
      expect(await detailOf(key, table, base)).toEqual([
        400,
        expect.stringContaining(`${encodeURI(base)} cannot be a base`),
      ]);
  });

  test.each([
    ["the parent of a folder", () => warehouse("mine/../victim"), "must not have . or .."],
    ["an encoded parent", () => `file://${warehouse("mine/%2e%2e/victim")}`, "must not have . or .."],
    ["a space that URLs lose", () => `file://${warehouse("mine/x")} `, "must not end with a space"],
    ["a relative path", () => "mine/x", "must be a file://"],
    ["another scheme", () => "az://container/x", "must be a file://"],
    ["another store", () => "s3://bucket/x", "the table is at file://"],
    ["the folder of its namespace", () => warehouse("mine"), "overlaps"],
  ])("is not %s", async (_, base, problem) => {
    const table = await declare(catalog.adminKey, `odd-${crypto.randomUUID()}`);
    const detail = await detailOf(catalog.adminKey, table, base());
    expect(detail).toEqual([400, expect.stringContaining(problem)]);
  });

  test("is not a symbolic link to another folder", async () => {
    const key = await writer("linker");
    mkdirSync(warehouse("mine"), { recursive: true });
    symlinkSync(warehouse("victim"), warehouse("mine/link"));
    const detail = await detailOf(key, await declare(key, "linked"), warehouse("mine/link"));
    expect(detail).toEqual([400, expect.stringContaining("leads through a symbolic link")]);
  });

  test("belongs to readers of its table, under the current name of the table", async () => {
    await catalog.call("createNamespace", { id: ["mine", "team"] });
    const base = warehouse("mine/owned");
    const owner = await declare(catalog.adminKey, "owner");
    expect((await commit(catalog.adminKey, owner, base)).status).toBe(200);
    const renamed = { id: owner.id, new_table_name: "owner", new_namespace_id: ["victim"] };
    expect((await catalog.call("renameTable", renamed)).status).toBe(200);

    const key = await writer("neighbour");
    const table = await declare(key, "neighbour");
    for (const each of [base, `${base}/inside`, warehouse("mine/owned/..")])
      expect((await commit(key, table, each)).status).toBe(400);
    const reader = await catalog.keyFor("reader-of-owner", { mine: "writer", victim: "reader" });
    expect((await commit(reader, table, base)).status).toBe(200);
    // The neighbour cannot read its table, which now has files of the other one.
    const versions = await catalog.call("describeTable", { id: table.id, load_detailed_metadata: true }, { key });
    expect(versions.status).toBe(403);
  });

  test("has no other table in it, until its own table is purged", async () => {
    const base = warehouse("mine/kept");
    const key = await writer("keeper");
    const table = await declare(key, "keeper");
    expect((await commit(key, table, base)).status).toBe(200);
    const declareAt = async (location: string) =>
      (await catalog.call("declareTable", { id: ["mine", "covering"], location }, { key })).status;
    for (const each of [base, `${base}/inside`]) expect(await declareAt(each)).toBe(409);
    await catalog.call("dropTable", { id: table.id }, { key });
    expect(await declareAt(base)).toBe(409);

    const { dropped_tables } = (await catalog.call("listDroppedTables", { id: ["mine"] })).body;
    const dropped_id = dropped_tables.find(({ location }) => location === table.location)?.dropped_id;
    expect((await catalog.call("undropTable", { id: table.id, new_id: ["mine", "keeper2"], dropped_id })).status).toBe(
      200,
    );
    expect((await commit(key, { ...table, id: ["mine", "keeper2"] }, base, 2)).status).toBe(200);
    await catalog.call("deregisterTable", { id: ["mine", "keeper2"] }, { key });
    expect(await declareAt(`${base}/inside`)).toBe(409);
    expect(await declareAt(base)).toBe(200);
  });

  test("is claimed by a registration, also under another name", async () => {
    const key = await writer("registrar");
    const base = warehouse("mine/registered-base");
    const table = await declare(key, "registered");
    expect((await commit(key, table, base)).status).toBe(200);
    await catalog.call("deregisterTable", { id: table.id }, { key });
    const location = table.location.replace(/.*\/warehouse\//, "");
    const register = { id: ["mine", "registered2"], location };
    expect((await catalog.call("registerTable", register, { key })).status).toBe(200);
    const reader = await catalog.keyFor("reader-of-registered", { mine$registered2: "reader" });
    // The manifest of this test has no schema, so that the library cannot open it.
    const { status } = await catalog.call("countTableRows", { id: register.id }, { key: reader });
    expect(status).not.toBe(403);
  });

  test("does not count when a writer outside the catalog added it", async () => {
    const key = await writer("outsider");
    const table = await declare(key, "outside");
    const versions = `/${pathOf(table)}/_versions`;
    mkdirSync(versions, { recursive: true });
    writeFileSync(`${versions}/${finalName(1)}`, manifestWith(warehouse("mine/unclaimed")));
    const { error } = await catalog.call("countTableRows", { id: table.id }, { key });
    expect(error).toMatchObject({ status: 403, detail: expect.stringContaining("mine/unclaimed") });
  });
});
