import type { managementContracts } from "@tiltyard/protocol";
import type { Handler } from "../handler.ts";

export const describeCaller: Handler<typeof managementContracts.describeCaller> = async (
  _request,
  _catalog,
  { principal },
) => ({
  principal: principal.name,
  grants: principal.grants.map(({ namespace, role }) => ({ namespace: [...namespace], role })),
});
