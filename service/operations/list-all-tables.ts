import { formatIdentifier } from "@tiltyard/protocol";
import { z } from "zod";
import { keyText, readPage } from "../domain/page.ts";
import { listAllTables as listIdentifiers } from "../store/tables.ts";
import type { Handler } from "./handler.ts";

export const listAllTables: Handler<"listAllTables"> = async (request, { store }) => {
  const includeDeclared = request.include_declared ?? true;
  const { items, ...page } = await readPage(
    { name: "all-tables", key: z.array(keyText) },
    request,
    (after = [], limit) => listIdentifiers(store.read, after, { limit, includeDeclared }),
    (identifier) => [...identifier],
  );
  return { tables: items.map((identifier) => formatIdentifier(identifier, request.delimiter)), ...page };
};
