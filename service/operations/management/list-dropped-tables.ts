import type { managementContracts } from "@tiltyard/protocol";
import { readPage } from "../../domain/page.ts";
import { listDroppedTables as list } from "../../store/dropped-tables.ts";
import type { Handler } from "../handler.ts";

export const listDroppedTables: Handler<typeof managementContracts.listDroppedTables> = async (
  request,
  { store, dropRetentionMs },
) => {
  const { items, ...page } = await readPage(
    "dropped-tables",
    request,
    (cursor, limit) => {
      const after = cursor && { droppedAtMillis: Number(cursor[0]), id: Number(cursor[1]) };
      return list(store.read, { within: request.id, after, limit });
    },
    ({ droppedAtMillis, id }) => [droppedAtMillis, id],
  );
  return {
    dropped_tables: items.map(({ id, identifier, location, droppedAtMillis }) => ({
      dropped_id: id,
      id: [...identifier],
      location,
      dropped_at_millis: droppedAtMillis,
      kept_until_millis: droppedAtMillis + dropRetentionMs,
    })),
    ...page,
  };
};
