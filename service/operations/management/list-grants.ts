import type { managementContracts } from "@tiltyard/protocol";
import { readPage } from "../../domain/page.ts";
import { listGrants as list } from "../../store/principals.ts";
import type { Handler } from "../handler.ts";

export const listGrants: Handler<typeof managementContracts.listGrants> = async (request, { store }) => {
  const { items, ...page } = await readPage(
    "grants",
    request,
    (cursor, limit) => {
      const [principal = "", ...namespace] = (cursor ?? []).map(String);
      const after = cursor && { principal, namespace };
      return list(store.read, request.id, request.principal, { after, limit });
    },
    ({ principal, namespace }) => [principal, ...namespace],
  );
  return {
    grants: items.map(({ principal, namespace, role }) => ({ principal, namespace: [...namespace], role })),
    ...page,
  };
};
