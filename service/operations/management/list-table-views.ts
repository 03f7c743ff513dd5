import { isDeepStrictEqual } from "node:util";
import { type Identifier, viewDefinitionPrefix as prefix, sourceOfView } from "@tiltyard/protocol";
import { requireTable } from "../../domain/require.ts";
import { listTablesWith } from "../../store/tables.ts";
import { type Handler, mayRead } from "../handler.ts";

/** Lists the views of a table in the whole catalog, because a view need not be in the namespace of its source. */
export const listTableViews: Handler<"listTableViews"> = async ({ id }, { store }, caller) => {
  await requireTable(store.read, id);
  const views = await listTablesWith(store.read, [], JSON.stringify(`${prefix}source_query`));
  const isReadable = mayRead(caller);
  return {
    views: views
      .filter(({ identifier, properties }) => isReadable(identifier) && isDeepStrictEqual(sourceOf(properties), id))
      .map(({ identifier }) => [...identifier]),
  };
};

/** Returns the source of a view; undefined if its definition has none. */
function sourceOf(properties: Readonly<Record<string, string>>): Identifier | undefined {
  try {
    return sourceOfView({ source_query: properties[`${prefix}source_query`] ?? "" });
  } catch {
    return undefined;
  }
}
