import { z } from "zod";
import { characters, entries, items, list, map, text } from "../bounds.ts";
import { defineContract, inDatabase, onPath } from "../contract.ts";
import { commonRequest, context, count, datasetErrors, fieldPath } from "../fields.ts";
import { type Identifier, parseIdentifier } from "../identifier.ts";
import { jobFields, withJobOptions } from "./job-options.ts";

const viewKinds = ["query", "udtf", "chunker"] as const;

const UdtfEntry = z
  .object({
    kind: z.enum(["udtf", "chunker"]),
    udtf: z.base64().max(characters.document).describe("A UDTFSpec or ChunkerSpec, as JSON in Base64."),
    udtf_sha: text(characters.name).describe("The SHA-256 of the content of `udtf`, in hexadecimal digits."),
    udtf_name: text(characters.name),
    udtf_version: text(characters.name),
    input_columns: list(fieldPath, items.columns).optional(),
    partition_by: fieldPath.optional(),
    partition_by_indexed_column: fieldPath.optional(),
    num_cpus: z.number().optional(),
    num_gpus: z.number().optional(),
    memory: z.int().optional().describe("The size in bytes."),
    error_handling: map(z.unknown(), entries.properties).optional(),
    batch: z.boolean().optional(),
    manifest: text(characters.document).optional(),
    manifest_checksum: text(characters.name).optional().describe("The client's own checksum of `manifest`."),
  })
  .meta({ id: "MaterializedViewUdtfEntry" });

/** A source query in Geneva's format. */
const SourceQuery = z.looseObject({ source_table: z.string().min(1) });

/** Parses a source query; undefined if it is not in Geneva's format. */
export function readSourceQuery(text: string): z.infer<typeof SourceQuery> | undefined {
  try {
    const query = JSON.parse(text);
    // The result of `JSON.parse` keeps the order of the fields.
    return SourceQuery.safeParse(query).success ? query : undefined;
  } catch {
    return undefined;
  }
}

/**
 * Returns the source table of a view; undefined if the query is not in Geneva's format. The query names it in the
 * database of the client.
 *
 * @throws CatalogError InvalidInput for an invalid name of a table.
 */
export function sourceOfView(request: {
  readonly source_query: string;
  readonly database?: Identifier | undefined;
}): Identifier | undefined {
  const query = readSourceQuery(request.source_query);
  return query === undefined ? undefined : inDatabase(request, parseIdentifier(query.source_table));
}

export const createMaterializedView = defineContract({
  operationId: "CreateMaterializedView",
  summary: "Create a materialized view, which jobs fill",
  path: "/v1/materialized_view/{id}/create",
  body: z
    .object({
      ...commonRequest,
      kind: z.enum(viewKinds),
      source_query: text(characters.document).describe(
        "The query in Geneva's format. The catalog stores it with the database of the client before the source.",
      ),
      output_schema: z.base64().max(characters.document).describe("An Arrow schema as an IPC message, in Base64."),
      udtf_spec: UdtfEntry.optional(),
      with_no_data: z.boolean().optional().describe("False opens the first refresh; true when absent."),
      auto_refresh: z.boolean().optional(),
    })
    .meta({ id: "CreateMaterializedViewRequest" }),
  response: z
    .object({
      context,
      version: count.describe("The first version of the view, which has no rows."),
      job_id: z.string().optional().describe("The id of the transaction that tracks the first refresh."),
    })
    .meta({ id: "CreateMaterializedViewResponse" }),
  status: 201,
  errors: [...datasetErrors, 429],
  bodySize: "large",
  access: onPath("writer"),
  // The response reveals the version of the source, and refreshes copy its rows.
  bodyAccess: (request) => {
    const source = sourceOfView(request);
    return source === undefined ? [] : [{ role: "reader", object: source }];
  },
});

/** The fields of a refresh, which are parameters of its job in addition to the definition of the view. */
export const refreshFields = {
  src_version: count.optional(),
  max_rows_per_fragment: z.int().optional(),
  concurrency: z.int().optional(),
  intra_applier_concurrency: z.int().optional(),
  source_task_size: z.int().optional(),
  cluster: text(characters.name).optional(),
  output_limit: z.int().optional().describe("The maximum number of rows of the view; only for chunker views."),
  manifest: text(characters.document)
    .optional()
    .describe("The manifest of Geneva as JSON, or the name of one that Geneva defined; that of the view when absent."),
  ...jobFields,
};

export const refreshMaterializedView = defineContract({
  operationId: "RefreshMaterializedView",
  summary: "Open a job that refreshes a materialized view",
  path: "/v1/materialized_view/{id}/refresh",
  body: withJobOptions(
    z.object({
      ...commonRequest,
      ...refreshFields,
    }),
  ).meta({ id: "RefreshMaterializedViewRequest" }),
  response: z
    .object({ context, job_id: z.string().describe("The id of the transaction that tracks the refresh.") })
    .meta({ id: "RefreshMaterializedViewResponse" }),
  status: 202,
  errors: [404, 409, 429],
  bodySize: "large",
  access: onPath("writer"),
});
