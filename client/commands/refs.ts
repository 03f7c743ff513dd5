import { Command, Option } from "commander";
import { type CatalogOptions, catalogOf } from "./catalog-command.ts";
import { readIdentifier } from "./identifier.ts";
import { listed } from "./listed.ts";
import { print, printTable, timeOf, wholeNumber } from "./output.ts";
import { addTableCommand } from "./tables.ts";

interface TagOptions extends CatalogOptions {
  readonly branch?: string;
}

/** Creates the command `tags`, which lists, creates, moves and deletes the tags of a table. */
export function tagsCommand(): Command {
  const tags = new Command("tags").description("list, create, move and delete the tags of a table");

  addTableCommand(tags, "list", "list the tags of a table").action(async (table: string, options: CatalogOptions) => {
    const { catalog } = catalogOf(options);
    const found = await listed(catalog.listTableTags, { id: readIdentifier(table) }, (page) =>
      Object.entries(page.tags),
    );
    const rows = found.map(([tag, { version, branch = "main" }]) => ({ tag, version, branch }));
    printTable(options, rows, ["tag", "version", "branch"]);
  });

  for (const [name, description] of [
    ["create", "tag a version of a table"],
    ["move", "move a tag to another version"],
  ] as const)
    addTableCommand(tags, name, description)
      .argument("<tag>")
      .argument("<version>", "the version's number", wholeNumber)
      .option("--branch <name>", "the branch of the version; the main branch when absent")
      .addHelpText("after", `\nExample:\n  tiltyard tags ${name} 'prod$films' best 3`)
      .action(async (table: string, tag: string, version: number, options: TagOptions) => {
        const { catalog } = catalogOf(options);
        const { branch } = options;
        const change = name === "create" ? catalog.createTableTag : catalog.updateTableTag;
        await change({ id: readIdentifier(table), tag, version, ...(branch !== undefined && { branch }) });
        print(options, { table, tag, version }, `${tag} is version ${version} of ${table}`);
      });

  addTableCommand(tags, "delete", "delete a tag; its version stays")
    .argument("<tag>")
    .action(async (table: string, tag: string, options: CatalogOptions) => {
      await catalogOf(options).catalog.deleteTableTag({ id: readIdentifier(table), tag });
      print(options, { table, tag, deleted: true }, `deleted ${tag}`);
    });

  return tags;
}

interface BranchOptions extends CatalogOptions {
  readonly fromVersion?: number;
  readonly fromBranch?: string;
}

/** Creates the command `branches`, which lists, creates and deletes the branches of a table. */
export function branchesCommand(): Command {
  const branches = new Command("branches").description("list, create and delete the branches of a table");

  addTableCommand(branches, "list", "list the branches of a table").action(
    async (table: string, options: CatalogOptions) => {
      const { catalog } = catalogOf(options);
      const found = await listed(catalog.listTableBranches, { id: readIdentifier(table) }, (page) =>
        Object.entries(page.branches),
      );
      const rows = found.map(([branch, { parentBranch = "main", parentVersion, createAt }]) => ({
        ...{ branch, parent: parentBranch, version: parentVersion },
        created: timeOf(createAt * 1_000),
      }));
      printTable(options, rows, ["branch", "parent", "version", "created"]);
    },
  );

  addTableCommand(branches, "create", "create a branch of a table")
    .argument("<name>")
    .option("--from-branch <name>", "the parent branch; the main branch when absent")
    .addOption(
      new Option("--from-version <number>", "the version to start at; the latest when absent").argParser(wholeNumber),
    )
    .action(async (table: string, name: string, options: BranchOptions) => {
      const { fromBranch, fromVersion } = options;
      await catalogOf(options).catalog.createTableBranch({
        ...{ id: readIdentifier(table), name },
        ...(fromBranch !== undefined && { from_branch: fromBranch }),
        ...(fromVersion !== undefined && { from_version: fromVersion }),
      });
      print(options, { table, branch: name }, `created ${name}`);
    });

  addTableCommand(branches, "delete", "delete a branch with its data")
    .argument("<name>")
    .action(async (table: string, name: string, options: CatalogOptions) => {
      await catalogOf(options).catalog.deleteTableBranch({ id: readIdentifier(table), name });
      print(options, { table, branch: name, deleted: true }, `deleted ${name}`);
    });

  return branches;
}
