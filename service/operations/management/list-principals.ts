import type { managementContracts } from "@tiltyard/protocol";
import { readPage } from "../../domain/page.ts";
import { listPrincipals as listSummaries } from "../../store/principals.ts";
import type { Handler } from "../handler.ts";

export const listPrincipals: Handler<typeof managementContracts.listPrincipals> = async (request, { store }) => {
  const { items, ...page } = await readPage(
    "principals",
    request,
    (cursor, limit) => listSummaries(store.read, String(cursor?.[0] ?? ""), limit),
    ({ principal }) => [principal],
  );
  return {
    principals: items.map(({ principal, apiKeys, grants }) => ({ principal, api_keys: apiKeys, grants })),
    ...page,
  };
};
