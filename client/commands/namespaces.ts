import { Command } from "commander";
import { CatalogRequestError } from "../catalog/errors.ts";
import { addCatalogCommand, type CatalogOptions, catalogOf } from "./catalog-command.ts";
import { readIdentifier, showIdentifier } from "./identifier.ts";
import { listed } from "./listed.ts";
import { print, printTable } from "./output.ts";

/** The code of the protocol for a namespace that is not empty. */
const namespaceNotEmpty = 3;

/** Creates the command `namespaces`, which lists, creates and drops namespaces. */
export function namespacesCommand(): Command {
  const namespaces = new Command("namespaces").description("list, create and drop namespaces of the catalog");

  addCatalogCommand(namespaces, "list", "list the namespaces in a namespace")
    .argument("[parent]", "the root namespace when absent", "$")
    .action(async (parent: string, options: CatalogOptions) => {
      const { catalog } = catalogOf(options);
      const id = readIdentifier(parent);
      const names = await listed(catalog.listNamespaces, { id }, ({ namespaces }) => namespaces);
      const rows = names.map((name) => ({ namespace: showIdentifier([...id, name]) }));
      printTable(options, rows, ["namespace"]);
    });

  addCatalogCommand(namespaces, "create", "create a namespace")
    .argument("<namespace>", "the identifier, e.g. 'prod$vision'")
    .option("--exist-ok", "succeed when the namespace exists")
    .action(async (namespace: string, options: CatalogOptions & { readonly existOk?: boolean }) => {
      const mode = options.existOk ? "ExistOk" : "Create";
      const answer = await catalogOf(options).catalog.createNamespace({ id: readIdentifier(namespace), mode });
      // The response has no transaction if nothing changed.
      const created = answer.transaction_id !== undefined;
      print(options, { namespace, created }, created ? `created ${namespace}` : `${namespace} exists already`);
    });

  addCatalogCommand(namespaces, "drop", "drop an empty namespace")
    .argument("<namespace>")
    .option("--cascade", "also drop everything in the namespace")
    .action(async (namespace: string, options: CatalogOptions & { readonly cascade?: boolean }) => {
      const behavior = options.cascade ? "Cascade" : "Restrict";
      const { catalog } = catalogOf(options);
      await catalog.dropNamespace({ id: readIdentifier(namespace), behavior }).catch((error) => {
        const isNotEmpty = error instanceof CatalogRequestError && error.code === namespaceNotEmpty;
        if (!isNotEmpty) throw error;
        throw new Error(`The namespace ${namespace} is not empty. Drop its contents first, or use --cascade`);
      });
      print(options, { namespace, dropped: true }, `dropped ${namespace}`);
    });

  return namespaces;
}
