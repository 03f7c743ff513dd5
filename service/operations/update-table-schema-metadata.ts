import { contracts } from "@tiltyard/protocol";
import { commitSchemaMetadata } from "../rows/schema-metadata.ts";
import type { Handler } from "./handler.ts";

const contract = contracts.updateTableSchemaMetadata;

export const updateTableSchemaMetadata: Handler<"updateTableSchemaMetadata"> = async (request, catalog, caller) => {
  const { metadata } = request;
  await commitSchemaMetadata(catalog, { contract, request, caller }, metadata);
  return metadata;
};
