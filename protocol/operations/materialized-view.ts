import { z } from "zod";
import { characters, entries, items, list, map, text } from "../bounds.ts";
import { defineContract, onPath } from "../contract.ts";
import { commonRequest, context, count, datasetErrors, fieldPath, optional } from "../fields.ts";
import { type Identifier, parseIdentifier } from "../identifier.ts";

const viewKinds = ["query", "udtf", "chunker"] as const;

const UdtfEntry = z
  .object({
    kind: z.enum(["udtf", "chunker"]),
    udtf: z.base64().max(characters.document).describe("A UDTFSpec or ChunkerSpec, as JSON in Base64."),
    udtf_sha: text(characters.name).describe("The SHA-256 of the content of `udtf`, in hexadecimal digits."),
    udtf_name: text(characters.name),
    udtf_version: text(characters.name),
    input_columns: optional(list(fieldPath, items.columns)),
    partition_by: optional(fieldPath),
    partition_by_indexed_column: optional(fieldPath),
    num_cpus: optional(z.number()),
    num_gpus: optional(z.number()),
    memory: optional(z.int()).describe("The size in bytes."),
    error_handling: optional(map(z.unknown(), entries.properties)),
    batch: optional(z.boolean()),
    manifest: optional(text(characters.document)),
    manifest_checksum: optional(text(characters.name)).describe("The client's own checksum of `manifest`."),
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
 * Returns the source table of a view; undefined if the query is not in Geneva's format.
 *
 * @throws CatalogError InvalidInput for an invalid name of a table.
 */
export function sourceOfView(request: { readonly source_query: string }): Identifier | undefined {
  const query = readSourceQuery(request.source_query);
  return query === undefined ? undefined : parseIdentifier(query.source_table);
}

/** The prefix of the table properties that define a view. The job of a refresh has them as parameters too. */
export const viewDefinitionPrefix = "materialized_view.";

/**
 * Returns the table that the job of a refresh reads; undefined for other jobs. The source is a parameter, so it cannot
 * change after the job is opened.
 */
export function sourceOfRefresh(parameters: Readonly<Record<string, string>>): Identifier | undefined {
  const source_query = parameters[`${viewDefinitionPrefix}source_query`];
  return source_query === undefined ? undefined : sourceOfView({ source_query });
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
        "The query in Geneva's format, which the catalog stores unchanged.",
      ),
      output_schema: z.base64().max(characters.document).describe("An Arrow schema as an IPC message, in Base64."),
      udtf_spec: optional(UdtfEntry),
      with_no_data: optional(z.boolean()).describe("False opens the first refresh; true when absent."),
      auto_refresh: optional(z.boolean()),
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
  errors: datasetErrors,
  bodySize: "large",
  access: onPath("writer"),
  // The response reveals the version of the source, and refreshes copy its rows.
  bodyAccess: (request) => {
    const source = sourceOfView(request);
    return source === undefined ? [] : [{ role: "reader", object: source }];
  },
});

export const refreshMaterializedView = defineContract({
  operationId: "RefreshMaterializedView",
  summary: "Open a job that refreshes a materialized view",
  path: "/v1/materialized_view/{id}/refresh",
  body: z
    .object({
      ...commonRequest,
      src_version: optional(count),
      max_rows_per_fragment: optional(z.int()),
      concurrency: optional(z.int()),
      intra_applier_concurrency: optional(z.int()),
      source_task_size: optional(z.int()),
      cluster: optional(text(characters.name)),
      output_limit: optional(z.int()).describe("The maximum number of rows of the view; only for chunker views."),
      manifest: optional(text(characters.document)),
    })
    .meta({ id: "RefreshMaterializedViewRequest" }),
  response: z
    .object({ context, job_id: z.string().describe("The id of the transaction that tracks the refresh.") })
    .meta({ id: "RefreshMaterializedViewResponse" }),
  status: 202,
  errors: [404, 409],
  bodySize: "large",
  access: onPath("writer"),
});
