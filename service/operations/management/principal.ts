import { keyText, readPage } from "../../domain/page.ts";
import { listPrincipals as listSummaries } from "../../store/principals.ts";
import type { Handler } from "../handler.ts";

export const describeCaller: Handler<"describeCaller"> = async (_request, _catalog, { principal }) => ({
  principal: principal.name,
  grants: principal.grants.map(({ namespace, role }) => ({ namespace: [...namespace], role })),
});

export const listPrincipals: Handler<"listPrincipals"> = async (request, { store }) => {
  const { items, ...page } = await readPage(
    { name: "principals", key: keyText },
    request,
    (after = "", limit) => listSummaries(store.read, after, limit),
    ({ principal }) => principal,
  );
  return {
    principals: items.map(({ principal, apiKeys, grants }) => ({ principal, api_keys: apiKeys, grants })),
    ...page,
  };
};
