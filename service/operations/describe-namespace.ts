import { requireNamespace } from "../domain/require.ts";
import type { Handler } from "./handler.ts";

export const describeNamespace: Handler<"describeNamespace"> = async (request, { store }) => {
  const { properties } = await requireNamespace(store.read, request.id);
  return { properties: { ...properties } };
};
