import { contracts } from "@tiltyard/protocol";
import { findField } from "../rows/field-path.ts";
import type { Handler } from "./handler.ts";

const contract = contracts.updateFieldMetadata;

export const updateFieldMetadata: Handler<"updateFieldMetadata"> = async (request, { rows }, caller) => {
  const updates = request.updates.map(({ path, metadata, replace = false }) => ({ path, metadata, replace }));
  const { result, transaction } = await rows.change("updateFieldMetadata", { contract, request, caller }, { updates });
  const { version, schema } = result;
  const metadataOf = (path: string) => ({ ...findField(schema.fields, path)?.field.metadata });
  const fields = Object.fromEntries(request.updates.map(({ path }) => [path, metadataOf(path)]));
  return { ...transaction, version, fields };
};
