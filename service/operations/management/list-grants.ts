import { z } from "zod";
import { keyText, readPage } from "../../domain/page.ts";
import { listGrants as list } from "../../store/grants.ts";
import type { Handler } from "../handler.ts";

const grants = { name: "grants", key: z.object({ principal: keyText, namespace: z.array(keyText) }) };

export const listGrants: Handler<"listGrants"> = async (request, { store }) => {
  const { items, ...page } = await readPage(
    grants,
    request,
    (after, limit) => list(store.read, request.id, request.principal, { after, limit }),
    ({ principal, namespace }) => ({ principal, namespace: [...namespace] }),
  );
  return {
    grants: items.map(({ principal, namespace, role }) => ({ principal, namespace: [...namespace], role })),
    ...page,
  };
};
