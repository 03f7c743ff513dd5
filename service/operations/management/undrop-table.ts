import { undropTable as undrop } from "../../dropping/undrop.ts";
import type { Handler } from "../handler.ts";

export const undropTable: Handler<"undropTable"> = async (request, { store }, caller) => {
  const dropped = { id: request.dropped_id, identifier: request.id };
  const { identifier, transaction } = await store.write((session) =>
    undrop(session, { caller, request }, dropped, request.new_id),
  );
  return { transaction_id: transaction, id: [...identifier] };
};
