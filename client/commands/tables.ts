import { arrowTypeText } from "@tiltyard/protocol";
import { Command } from "commander";
import { stringify } from "yaml";
import type { CatalogClient } from "../catalog/documented-operations.ts";
import { CatalogRequestError } from "../catalog/errors.ts";
import type { CatalogAnswer } from "../catalog/operation-types.ts";
import { addCatalogCommand, type CatalogOptions, catalogOf } from "./catalog-command.ts";
import { addDroppedTableCommands } from "./dropped-tables.ts";
import { readIdentifier, showIdentifier } from "./identifier.ts";
import { listed } from "./listed.ts";
import { limitOption, print, printTable, terminalWidth, timeOf } from "./output.ts";
import { firstRows } from "./table-rows.ts";
import { formatTable } from "./terminal-text.ts";

type Described = CatalogAnswer<import("@tiltyard/protocol").Contracts["describeTable"]>;

/** The maximum number of rows that `tables head` prints. */
const headMax = 100;

interface LimitOptions extends CatalogOptions {
  readonly limit: number;
}

/** Creates the command `tables`, which browses, drops and protects the tables of the catalog. */
export function tablesCommand(): Command {
  const tables = new Command("tables").description("list, show, drop, undrop and protect the tables of the catalog");

  addCatalogCommand(tables, "list", "list the tables of a namespace")
    .argument("[namespace]", "the root namespace when absent", "$")
    .option("-A, --all-namespaces", "list the tables of all namespaces")
    .addHelpText("after", "\nExample:\n  tiltyard tables list prod")
    .action(async (namespace: string, options: CatalogOptions & { readonly allNamespaces?: boolean }) => {
      const { catalog } = catalogOf(options);
      const parent = readIdentifier(namespace);
      const found = options.allNamespaces
        ? await listed(catalog.listAllTables, {}, ({ tables }) => tables)
        : (await listed(catalog.listTables, { id: parent }, ({ tables }) => tables)).map((name) =>
            showIdentifier([...parent, name]),
          );
      const rows = found.map((table) => ({ table }));
      printTable(options, rows, ["table"]);
    });

  addTableCommand(tables, "describe", "show the schema, the size and the properties of a table").action(
    async (table: string, options: CatalogOptions) => {
      const { catalog } = catalogOf(options);
      const { context: _, ...described } = await describe(catalog, readIdentifier(table));
      print(options, described, stringify(summaryOf(table, described)).trimEnd());
    },
  );

  addTableCommand(tables, "head", "print the first rows of a table; long values are cut")
    .addOption(limitOption(`the number of rows, ${headMax} at most`, 10, headMax))
    .action(async (table: string, options: LimitOptions) => {
      const { management } = catalogOf(options);
      const { names, values, texts } = await firstRows(management, readIdentifier(table), options.limit);
      print(options, values, formatTable(texts, names, terminalWidth(process.stdout)));
    });

  addTableCommand(tables, "versions", "list the versions of a table, latest first")
    .option("--branch <name>", "the branch; the main branch when absent")
    .addOption(limitOption("the number of versions", 20))
    .action(async (table: string, options: LimitOptions & { readonly branch?: string }) => {
      const { branch, limit } = options;
      const request = { id: readIdentifier(table), descending: true, limit, ...(branch !== undefined && { branch }) };
      const { catalog } = catalogOf(options);
      const versions = await listed(catalog.listTableVersions, request, (page) => page.versions, limit);
      const rows = versions.map(({ version, timestamp_millis, manifest_size }) => ({
        version,
        created: timeOf(timestamp_millis),
        manifest_bytes: manifest_size,
      }));
      printTable(options, rows, ["version", "created", "manifest_bytes"]);
    });

  addTableCommand(tables, "drop", "drop a table; `tables undrop` restores it within the retention time").action(
    async (table: string, options: CatalogOptions) => {
      await catalogOf(options).catalog.dropTable({ id: readIdentifier(table) });
      print(options, { table, dropped: true }, `dropped ${table}`);
    },
  );

  addDroppedTableCommands(tables);
  for (const [name, description, isProtected] of [
    ["protect", "refuse to drop a table", true],
    ["unprotect", "allow a table to be dropped", false],
  ] as const)
    addTableCommand(tables, name, description).action(async (table: string, options: CatalogOptions) => {
      const { management } = catalogOf(options);
      const change = isProtected ? management.protectTable : management.unprotectTable;
      await change({ id: readIdentifier(table) });
      print(options, { table, protected: isProtected }, `${table} is ${isProtected ? "" : "not "}protected`);
    });

  return tables;
}

export function addTableCommand(to: Command, name: string, description: string): Command {
  return addCatalogCommand(to, name, description).argument("<table>", "the table's identifier, e.g. 'prod$films'");
}

/** Describes a table with its schema and rows, or without them if the catalog cannot read the data of tables. */
async function describe(
  catalog: CatalogClient,
  id: readonly string[],
): Promise<Described & { readonly rows?: number }> {
  try {
    const described = await catalog.describeTable({ id, load_detailed_metadata: true, check_declared: true });
    const { is_only_declared: isOnlyDeclared, version } = described;
    if (isOnlyDeclared || version === undefined) return described;
    return { ...described, rows: await catalog.countTableRows({ id, version }) };
  } catch (error) {
    if (!(error instanceof CatalogRequestError && error.status === 406)) throw error;
    return await catalog.describeTable({ id });
  }
}

/** Returns the fields of a table in the order of their importance for users. */
function summaryOf(
  table: string,
  described: Omit<Described, "context"> & { readonly rows?: number },
): Record<string, unknown> {
  const { version, location, rows, stats, schema, properties, is_only_declared: isOnlyDeclared } = described;
  return {
    table,
    location,
    ...(isOnlyDeclared ? { state: "declared, without data" } : version !== undefined && { version }),
    ...(rows !== undefined && { rows }),
    ...(stats && { fragments: stats.num_fragments, "deleted rows": stats.num_deleted_rows }),
    ...(schema && { columns: Object.fromEntries(schema.fields.map((field) => [field.name, typeOf(field)])) }),
    ...(Object.keys(properties).length > 0 && { properties }),
  };
}

type Field = NonNullable<Described["schema"]>["fields"][number];

function typeOf({ type, nullable }: Field): string {
  return `${arrowTypeText(type)}${nullable ? "" : ", not null"}`;
}
