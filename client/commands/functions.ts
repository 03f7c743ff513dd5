import { type FunctionVersion, formatFields, formatSignature } from "@tiltyard/protocol";
import { Command } from "commander";
import { stringify } from "yaml";
import type { CatalogClient } from "../catalog/documented-operations.ts";
import { addCatalogCommand, type CatalogOptions, catalogOf } from "./catalog-command.ts";
import { readIdentifier, showIdentifier } from "./identifier.ts";
import { listed } from "./listed.ts";
import { print, printTable, timeOf, wholeNumber } from "./output.ts";

/** Creates the command `functions`, which lists, shows and drops the Functions that lancedb's client registers. */
export function functionsCommand(): Command {
  const functions = new Command("functions").description("list, show and drop the Functions of LanceDB's client");

  addCatalogCommand(functions, "list", "list the versions of the Functions of a namespace")
    .argument("[namespace]", "the root namespace when absent", "$")
    .action(async (namespace: string, options: CatalogOptions) => {
      const versions = await versionsIn(catalogOf(options).catalog, readIdentifier(namespace));
      const rows = versions.map((version) => ({
        function: nameOf(version),
        version: version.version,
        signature: formatSignature(version.signature),
        created: timeOf(version.created_at_millis),
      }));
      printTable(options, rows, ["function", "version", "signature", "created"], versions);
    });

  addCatalogCommand(functions, "describe", "show a version of a Function")
    .argument("<function>", "the identifier, e.g. 'prod$embed'")
    .argument("[version]", "the version's number; the newest when absent", wholeNumber)
    .action(async (name: string, version: number | undefined, options: CatalogOptions) => {
      const { catalog } = catalogOf(options);
      const id = readIdentifier(name);
      const found = version === undefined ? await newestOf(catalog, id) : await versionOf(catalog, id, version);
      print(options, found, stringify(summaryOf(found)).trimEnd());
    });

  addCatalogCommand(functions, "drop", "drop a version of a Function that no column uses")
    .argument("<function>", "the identifier, e.g. 'prod$embed'")
    .argument("<version>", "the version's number", wholeNumber)
    .addHelpText("after", "\nExample:\n  tiltyard functions drop 'prod$embed' 1")
    .action(async (name: string, version: number, options: CatalogOptions) => {
      const { catalog } = catalogOf(options);
      const { dropped } = await catalog.dropFunction({ id: readIdentifier(name), version: String(version) });
      if (!dropped) throw new Error(`the Function ${name} has no version ${version}`);
      print(options, { function: name, version, dropped }, `dropped version ${version} of ${name}`);
    });

  return functions;
}

function versionsIn(catalog: CatalogClient, id: readonly string[]): Promise<readonly FunctionVersion[]> {
  return listed(catalog.listFunctions, { id }, (page) => page.functions.map(({ definition }) => definition));
}

async function newestOf(catalog: CatalogClient, id: readonly string[]): Promise<FunctionVersion> {
  const found = (await versionsIn(catalog, id.slice(0, -1))).filter(({ name }) => name === id.at(-1));
  const newest = found.toSorted((one, other) => Number(other.version) - Number(one.version))[0];
  if (newest === undefined) throw new Error(`the Function ${showIdentifier(id)} does not exist`);
  return newest;
}

async function versionOf(catalog: CatalogClient, id: readonly string[], version: number): Promise<FunctionVersion> {
  const { context: _, ...found } = await catalog.describeFunction({ id, version: String(version) });
  return found;
}

function nameOf({ name, namespace_path = [] }: FunctionVersion): string {
  return showIdentifier([...namespace_path, name]);
}

function summaryOf(version: FunctionVersion) {
  const { initialization } = version.signature;
  return {
    function: nameOf(version),
    version: version.version,
    signature: formatSignature(version.signature),
    ...(initialization && { constructor: `(${formatFields(initialization)})` }),
    python: Object.values(version.image.descriptor).join(" "),
    ...(version.disabled && { disabled: "its packages are not installed yet. See: tiltyard jobs list" }),
    digest: version.image.manifest_digest,
    created: timeOf(version.created_at_millis),
  };
}
