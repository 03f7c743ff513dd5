import { z } from "zod";
import { readPage } from "../../domain/page.ts";
import { listDroppedTables as list } from "../../store/dropped-tables.ts";
import type { Handler } from "../handler.ts";

const droppedTables = { name: "dropped-tables", key: z.object({ droppedAtMillis: z.int(), id: z.int32() }) };

export const listDroppedTables: Handler<"listDroppedTables"> = async (request, { store, dropRetentionMs }) => {
  const { items, ...page } = await readPage(
    droppedTables,
    request,
    (after, limit) => list(store.read, { within: request.id, after, limit }),
    ({ droppedAtMillis, id }) => ({ droppedAtMillis, id }),
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
