/** The equivalent of operations.py for LanceDB's client for Node, either with `remote` or with direct storage access. */
import { createInterface } from "node:readline";
import {
  type Connection,
  connect,
  connectNamespace,
  Index,
  type Query,
  type Table,
  type VectorQuery,
} from "@lancedb/lancedb";

const { URL: uri = "", KEY: apiKey = "", NAMESPACE: namespace = "" } = process.env;
const isRemote = process.argv[2] === "remote";

const database: Connection = isRemote
  ? await connect("db://films", { apiKey, hostOverride: uri })
  : await connectNamespace("rest", { uri, "headers.x-api-key": apiKey });

const films = (): Promise<Table> => database.openTable("films", [namespace]);
const rows = (ids: readonly number[], title?: string) =>
  ids.map((id) => ({ id, title: title ?? `film ${id}`, vector: [id, 0] }));

async function create(mode: "create" | "overwrite", ids: readonly number[]): Promise<void> {
  await database.createTable("films", rows(ids), [namespace], { mode });
}

async function idsOf(query: Query | VectorQuery): Promise<number[]> {
  const found = (await query.toArray()) as { readonly id: number }[];
  return found.map(({ id }) => Number(id)).sort((one, other) => one - other);
}

async function checkout(version: number | string): Promise<number[]> {
  const table = await films();
  await table.checkout(version);
  return idsOf(table.query().limit(10));
}

const operations: Readonly<Record<string, () => Promise<unknown>>> = {
  create: () => create("create", [1, 2, 3]),
  append: async () => (await films()).add(rows([4])),
  read: async () => idsOf((await films()).query().limit(10)),
  search: async () => idsOf((await films()).vectorSearch([3, 0]).limit(1)),
  update: async () => (await films()).update({ where: "id = 1", values: { title: "new" } }),
  delete: async () => (await films()).delete("id = 2"),
  merge: async () => {
    const merge = (await films()).mergeInsert("id").whenMatchedUpdateAll().whenNotMatchedInsertAll();
    await merge.execute(rows([3, 5], "merged"));
  },
  add_column: async () => (await films()).addColumns([{ name: "twice", valueSql: "id * 2" }]),
  index: async () => (await films()).createIndex("id", { config: Index.btree() }),
  version: () => checkout(1),
  tag: async () => {
    await (await (await films()).tags()).create("first", 1);
    return checkout("first");
  },
  ...(isRemote ? {} : { compact: async () => (await films()).optimize() }),
  overwrite: () => create("overwrite", [1, 2]),
  drop: () => database.dropTable("films", [namespace]),
};

function answer(value: unknown): void {
  process.stdout.write(`${JSON.stringify(value)}\n`);
}

answer(Object.keys(operations));
for await (const name of createInterface({ input: process.stdin })) {
  try {
    const found = await operations[name]?.();
    answer({ found: Array.isArray(found) ? found : null });
  } catch (error) {
    answer({ error: String(error) });
  }
}
