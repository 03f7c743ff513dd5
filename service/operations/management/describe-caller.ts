import type { Handler } from "../handler.ts";

export const describeCaller: Handler<"describeCaller"> = async (_request, _catalog, { principal }) => ({
  principal: principal.name,
  grants: principal.grants.map(({ namespace, role }) => ({ namespace: [...namespace], role })),
});
