import { contracts } from "@tiltyard/protocol";
import type { Handler } from "./handler.ts";

const contract = contracts.updateFieldMetadata;

export const updateFieldMetadata: Handler<typeof contract> = async (request, { rows }, caller) => {
  const updates = request.updates.map(({ path, metadata, replace = false }) => ({ path, metadata, replace }));
  const { result, transaction } = await rows.change("updateFieldMetadata", { contract, request, caller }, { updates });
  const { version, schema } = result;
  const fields = Object.fromEntries(request.updates.map(({ path }) => [path, findField(schema.fields, path)]));
  return { ...transaction, version, fields };
};

interface Field {
  readonly name: string;
  readonly metadata?: Readonly<Record<string, string>> | undefined;
  readonly type: { readonly fields?: readonly Field[] | undefined };
}

/** Returns the metadata of the field at a path. Segments that contain a dot are in backticks. */
function findField(fields: readonly Field[], path: string): Record<string, string> {
  const segments = [...path.matchAll(/`((?:[^`]|``)*)`|[^.]+/g)].map(([plain, quoted]) =>
    quoted === undefined ? plain : quoted.replaceAll("``", "`"),
  );
  let found: Field | undefined;
  for (const segment of segments)
    found = (found === undefined ? fields : (found.type.fields ?? [])).find(({ name }) => name === segment);
  return { ...found?.metadata };
}
