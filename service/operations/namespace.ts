import { type AnswerOf, CatalogError, type contracts, formatIdentifier } from "@tiltyard/protocol";
import { z } from "zod";
import { keyText, readPage } from "../domain/page.ts";
import { requireNamespace } from "../domain/require.ts";
import { carryOut, prepareAudit } from "../domain/transaction.ts";
import { deleteNamespace, findNamespace, insertNamespace, listChildNamespaces } from "../store/namespaces.ts";
import { listAllTables as listIdentifiers, listTables as listNames } from "../store/tables.ts";
import { dropContents, isEmpty } from "../tables/drop.ts";
import { type Handler, RenderedJson } from "./handler.ts";

type ListTablesResponse = AnswerOf<typeof contracts.listTables>;

export const createNamespace: Handler<"createNamespace"> = async (request, catalog, caller) => {
  const { id: identifier, mode = "Create", properties = {} } = request;
  const { store, dropRetentionMs, worker } = catalog;
  const audit = prepareAudit({ caller, objects: [identifier] });
  const answer = { transaction_id: audit.name, properties };

  const isReplaced = mode === "Overwrite" && identifier.length > 0;
  if (isReplaced && (await findNamespace(store.read, identifier)) !== undefined) {
    await carryOut(store, audit, () =>
      dropContents(store, identifier, dropRetentionMs, async (session) => {
        await requireNamespace(session, identifier.slice(0, -1));
        await deleteNamespace(session, identifier);
        await insertNamespace(session, { identifier, properties });
      }),
    );
    worker.wake();
    return answer;
  }
  return store.write(async (session) => {
    const present = await findNamespace(session, identifier);
    if (present !== undefined && mode === "ExistOk") return { properties: present.properties };
    if (present !== undefined)
      throw new CatalogError("NamespaceAlreadyExists", `namespace ${formatIdentifier(identifier)} already exists`);
    await requireNamespace(session, identifier.slice(0, -1));
    await insertNamespace(session, { identifier, properties });
    await audit.record(session);
    return answer;
  });
};

export const listNamespaces: Handler<"listNamespaces"> = async (request, { store }) => {
  await requireNamespace(store.read, request.id);
  const { items, ...page } = await readPage({ name: "namespaces", key: keyText }, request, (after = "", limit) =>
    listChildNamespaces(store.read, request.id, after, limit),
  );
  return { namespaces: items, ...page };
};

export const describeNamespace: Handler<"describeNamespace"> = async (request, { store }) => {
  const { properties } = await requireNamespace(store.read, request.id);
  return { properties };
};

/** Drops a namespace. If a step of Cascade fails, the namespace remains with the rest of its contents. */
export const dropNamespace: Handler<"dropNamespace"> = async (request, catalog, caller) => {
  const { id: identifier, mode = "Fail", behavior = "Restrict" } = request;
  const { store } = catalog;
  if (identifier.length === 0) throw new CatalogError("InvalidInput", "id: the root namespace cannot be dropped");
  if (mode === "Skip" && (await findNamespace(store.read, identifier)) === undefined) return {};
  const { properties } = await requireNamespace(store.read, identifier);
  const audit = prepareAudit({ caller, objects: [identifier] });

  if (behavior === "Cascade")
    await carryOut(store, audit, () =>
      dropContents(store, identifier, catalog.dropRetentionMs, (session) => deleteNamespace(session, identifier)),
    );
  else
    await store.write(
      async (session) => {
        await requireNamespace(session, identifier);
        if (!(await isEmpty(session, identifier)))
          throw new CatalogError(
            "NamespaceNotEmpty",
            `namespace ${formatIdentifier(identifier)} is not empty: drop its contents first, or use the behavior Cascade`,
          );
        await deleteNamespace(session, identifier);
        await audit.record(session);
      },
      { locking: "tables" },
    );
  catalog.worker.wake();
  return { properties, transaction_id: audit.identifier };
};

export const namespaceExists: Handler<"namespaceExists"> = async (request, { store }) => {
  await requireNamespace(store.read, request.id);
};

/** Caches rendered pages, because rendering 1,000 names would be a third of the work of the request. */
export const listTables: Handler<"listTables", RenderedJson<ListTablesResponse>> = async (request, { store }) => {
  const { id, include_declared: includeDeclared = true, page_token, limit } = request;
  await requireNamespace(store.read, id);
  return store.read.cached(JSON.stringify(["tables", id, includeDeclared, page_token, limit]), async () => {
    const { items, ...page } = await readPage(
      { name: "tables", key: keyText, takesKeys: true },
      request,
      (after = "", count) => listNames(store.read, id, after, { limit: count, includeDeclared }),
    );
    return new RenderedJson({ tables: items, ...page });
  });
};

export const listAllTables: Handler<"listAllTables"> = async (request, { store }) => {
  const includeDeclared = request.include_declared ?? true;
  const { items, ...page } = await readPage(
    { name: "all-tables", key: z.array(keyText) },
    request,
    (after = [], limit) => listIdentifiers(store.read, after, { limit, includeDeclared }),
  );
  return { tables: items.map((identifier) => formatIdentifier(identifier, request.delimiter)), ...page };
};
