import { CatalogError, type FunctionVersion, formatIdentifier, type Identifier } from "@tiltyard/protocol";
import type { FunctionRecord } from "../store/functions.ts";

/**
 * Converts a version to the format of LanceDB's client.
 *
 * @param database The namespace of the client, which it does not name.
 */
export function toFunctionVersion(record: FunctionRecord, database: readonly string[] = []): FunctionVersion {
  const { id, name, version, digest, definition, createdAtMillis, isReady } = record;
  const pathOf = (namespace: Identifier) =>
    namespace.length > database.length && { namespace_path: namespace.slice(database.length) };
  return {
    name,
    ...pathOf(record.namespace),
    object_id: id,
    location: `tiltyard:///function/${id}`,
    version: String(version),
    image: {
      manifest_digest: digest,
      descriptor: { python_version: definition.runtime.python_version },
      source: true,
    },
    signature: definition.signature,
    secret_bindings: definition.secret_bindings?.map(({ secret_ref: { name, namespace_path = [] }, ...binding }) => ({
      ...binding,
      secret_ref: { name, ...pathOf(namespace_path) },
    })),
    created_at: new Date(createdAtMillis).toISOString(),
    created_at_millis: createdAtMillis,
    metadata: {},
    disabled: !isReady,
  };
}

export function versionNotFound(function_: Identifier, version: string | number | undefined): CatalogError {
  return new CatalogError("FunctionNotFound", `the Function ${formatIdentifier(function_)} has no version ${version}`);
}
