import type { contracts } from "@tiltyard/protocol";
import { requireNamespace } from "../domain/require.ts";
import type { Handler } from "./handler.ts";

export const namespaceExists: Handler<typeof contracts.namespaceExists> = async (request, { store }) => {
  await requireNamespace(store.read, request.id);
};
