import { mkdirSync, renameSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathOf, stageManifest, type TestCatalog } from "../../support/catalog.ts";
import { arrowStream, films } from "../../support/rows.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

/** The request of an operation by the fields of its contract. Rows are the Arrow stream of an operation that accepts one. */
export interface CaseRequest {
  readonly id?: readonly string[];
  readonly [field: string]: unknown;
}

/** The objects of the catalog that the cases use, with functions that create more. */
export interface World {
  readonly namespace: string[];
  readonly emptyNamespace: string[];
  /** A table with two versions, an index `by_id`, a tag `first`, and a branch `side` with a nested branch. */
  readonly films: string[];
  readonly filmsLocation: string;
  /** A table whose tag and branch `broken` were not written by Lance. */
  readonly broken: string[];
  /** A table like `films` whose folder is a link to a folder outside the warehouse. */
  readonly linked: string[];
  readonly protectedTable: string[];
  /** Returns the id of a missing object below a number of existing namespaces. */
  readonly newId: (depth: 0 | 1) => string[];
  readonly newDeclared: () => Promise<string[]>;
  readonly newFilms: () => Promise<string[]>;
  /** Creates the index `by_id`. */
  readonly addIndex: (id: string[]) => Promise<CaseRequest>;
  readonly newJob: () => Promise<string[]>;
  /** Returns a request to fill a computed column. */
  readonly newComputed: () => Promise<CaseRequest>;
  /** Returns a request that was already sent. */
  readonly newBackfilled: () => Promise<CaseRequest>;
  /** A table with a computed column in a namespace with as many open jobs as the catalog of the test allows. */
  readonly ofFull: CaseRequest;
  /** Returns a table with an open refresh. */
  readonly newRefreshed: () => Promise<string[]>;
  readonly newTag: () => Promise<CaseRequest>;
  readonly newBranch: () => Promise<CaseRequest>;
  /** Returns a request to commit a version with a staged manifest, of a new table by default. */
  readonly newVersion: (version: number, id?: string[]) => Promise<CaseRequest>;
  /** Deregisters a table. @returns Its location. */
  readonly forget: (id: string[]) => Promise<string>;
}

/** A function of a column. */
const udf = Buffer.from(JSON.stringify({ image: "x", udf_pickle: "eA==" })).toString("base64");
export const titleLength = {
  ...{ input_columns: ["title"], image: "x", udf, udf_name: "title_length" },
  ...{ udf_version: "1", udf_backend: "DockerUDFSpecV1" },
};

/** The maximum number of open jobs in a namespace of the catalog of these tests. */
export const openJobsMax = 30;

export async function createWorld(catalog: TestCatalog): Promise<World> {
  const namespace = ["there"];
  let made = 0;
  const newId = (depth: 0 | 1) => [...namespace.slice(0, depth), `new_${made++}`];
  const locationOf = async (id: string[]) => (await catalog.call("describeTable", { id })).body.location;
  const newDeclared = async () => {
    const id = newId(1);
    await catalog.call("declareTable", { id });
    return id;
  };
  const newFilms = async () => {
    const id = newId(1);
    await catalog.call("createTable", { id }, { body: arrowStream(films) });
    return id;
  };
  const addIndex = async (id: string[]) => {
    const indexName = "by_id";
    await catalog.call("createTableScalarIndex", { id, column: "id", index_type: "BTREE", name: indexName });
    return { id, indexName };
  };

  const newComputed = async (of?: string[]) => {
    of ??= await newFilms();
    await catalog.call("alterTableAddColumns", { id: of, new_columns: [{ name: "computed", computed: "id * 2" }] });
    return { id: of, column: "computed" };
  };

  for (const id of [namespace, ["empty"]]) await catalog.call("createNamespace", { id });
  const [id, linked, broken, protectedTable] = [
    await newFilms(),
    await newFilms(),
    await newDeclared(),
    await newDeclared(),
  ];
  for (const each of [id, linked]) await addIndex(each);
  await catalog.call("createTableTag", { id, tag: "first", version: 1 });
  await catalog.call("createTableBranch", { id, name: "side" });
  await catalog.call("createTableBranch", { id, name: "beyond", from_branch: "side" });
  await catalog.call("protectTable", { id: protectedTable });

  const brokenFolder = `/${pathOf({ id: broken, location: await locationOf(broken) })}`;
  for (const kind of ["tags", "branches"]) {
    mkdirSync(join(brokenFolder, "_refs", kind), { recursive: true });
    writeFileSync(join(brokenFolder, "_refs", kind, "broken.json"), "{");
  }
  const linkedFolder = `/${pathOf({ id: linked, location: await locationOf(linked) })}`;
  const elsewhere = join(temporaryFolder("elsewhere-"), "table");
  renameSync(linkedFolder, elsewhere);
  symlinkSync(elsewhere, linkedFolder);

  const full = ["full", "films"];
  await catalog.call("createNamespace", { id: full.slice(0, 1) });
  await catalog.call("createTable", { id: full }, { body: arrowStream(films) });
  const ofFull = await newComputed(full);
  const outputs = [{ column: "length", struct_field: "", nullable: true, data_type: { type: "int64" } }];
  const new_columns = [{ name: "length", virtual_column: { ...titleLength, outputs } }];
  await catalog.call("alterTableAddColumns", { id: full, new_columns });
  for (let open = 0; open < openJobsMax; open += 1) await catalog.call("openJob", { id: full });

  return {
    namespace,
    emptyNamespace: ["empty"],
    films: id,
    filmsLocation: await locationOf(id),
    broken,
    linked,
    protectedTable,
    newId,
    newDeclared,
    newFilms,
    addIndex,
    newJob: async () => (await catalog.call("openJob", { id, column: "c" })).body.job_id.split("$"),
    newComputed,
    ofFull,
    newBackfilled: async () => {
      const request = await newComputed();
      await catalog.call("alterTableBackfillColumns", request);
      return request;
    },
    newRefreshed: async () => {
      const of = await newFilms();
      await catalog.call("refreshMaterializedView", { id: of });
      return of;
    },
    newTag: async () => {
      const [tag] = newId(0);
      await catalog.call("createTableTag", { id, tag, version: 1 });
      return { id, tag };
    },
    newBranch: async () => {
      const [name] = newId(0);
      await catalog.call("createTableBranch", { id, name });
      return { id, name };
    },
    newVersion: async (version, given) => {
      const of = given ?? (await newDeclared());
      return { id: of, version, manifest_path: stageManifest({ id: of, location: await locationOf(of) }, version) };
    },
    forget: async (of) => {
      const location = await locationOf(of);
      await catalog.call("deregisterTable", { id: of });
      return location;
    },
  };
}
