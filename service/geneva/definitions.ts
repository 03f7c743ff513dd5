import { type ArgsOf, literal, type ReadOperations, toExpression } from "@tiltyard/lance-worker";
import {
  CatalogError,
  contracts,
  formatIdentifier,
  type Identifier,
  jsonOrUndefined,
  parseManifest,
  parsing,
  problemsIn,
  systemNamespaceOf,
} from "@tiltyard/protocol";
import { z } from "zod";
import type { Principal } from "../auth/authenticator.ts";
import { isAllowed } from "../auth/authorize.ts";
import { jsonOf } from "../domain/request-fields.ts";
import { catalogOrigin, type Origin, prepareAudit } from "../domain/transaction.ts";
import type { Reader } from "../rows/reader.ts";
import { findNamespace, insertNamespace } from "../store/namespaces.ts";
import type { Store } from "../store/store.ts";
import { findTable } from "../store/tables.ts";

interface Deps {
  readonly store: Store;
  readonly rows: Reader;
  readonly isolatedNamespaces: readonly string[];
  /** The names of the Ray clusters in the runner's file. */
  readonly rayClusters: readonly string[];
}

interface DefinitionRequest {
  /** The object whose namespace of Geneva's records has the definitions. */
  readonly id: Identifier;
  readonly caller: { readonly principal: Principal };
}

/** The tables of Geneva's `define_manifest` and `define_cluster`. */
const tables = { manifest: "geneva_manifests", cluster: "geneva_cluster_definitions" } as const;
type Kind = keyof typeof tables;

const definitionsMax = 100;
/** The number of characters of an unknown name in an error. The text may be a broken manifest. */
const nameShown = 100;

const jsonText = z
  .string()
  .transform(jsonOrUndefined)
  .refine((value) => value !== undefined, "must be JSON")
  .nullish();

/** A row of a manifest. Geneva stores maps as JSON, unlike in the JSON of a manifest. */
const ManifestRow = z
  .looseObject({ name: z.string(), conda: jsonText, env_vars: jsonText })
  .transform(({ created_at: _, created_by: __, ...manifest }) => manifest);

const amounts = { num_cpus: z.int().positive(), memory: z.string() };
/** The part of a cluster's definition that its owner chooses. The platform's operator chooses all the rest. */
const KubeRay = z.object({
  head_group: z.object({ ...amounts, k8s_spec_override: z.unknown() }),
  worker_groups: z.array(
    z.object({
      ...amounts,
      name: z.string().nullish(),
      num_gpus: z.int().nonnegative().default(0),
      min_replicas: z.int().nonnegative().default(0),
      max_replicas: z.int().positive().default(100),
      idle_timeout_seconds: z.int().positive().default(60),
      k8s_spec_override: z.unknown(),
    }),
  ),
});
const ClusterRow = z.object({ name: z.string(), cluster_type: z.string(), kuberay: jsonText });

/**
 * Resolves the names in a request for a job by Geneva's definitions: a manifest becomes its JSON, and a cluster also its
 * definition, within the policy of the platform.
 *
 * @returns The changed fields of the request.
 * @throws CatalogError InvalidInput for names that are unknown or that the caller may not read, and for definitions that
 * the platform does not accept.
 */
export async function resolveNames(
  deps: Deps,
  { manifest, cluster, ...request }: DefinitionRequest & Partial<Record<Kind, string | undefined>>,
): Promise<{ readonly manifest?: string; readonly cluster_definition?: string }> {
  const definition = cluster === undefined ? undefined : await clusterNamed(deps, request, cluster);
  return {
    ...(manifest !== undefined && {
      manifest: runnable(
        manifest.trimStart().startsWith("{") ? manifest : await manifestNamed(deps, request, manifest),
      ),
    }),
    ...(definition !== undefined && { cluster_definition: JSON.stringify(definition) }),
  };
}

/** Returns a manifest. @throws CatalogError InvalidInput for one that no runner accepts. */
export function runnable(manifest: string): string {
  parseManifest(manifest, (problem) => {
    throw new CatalogError("InvalidInput", `manifest: ${problem}`);
  });
  return manifest;
}

/** Lists the names of the definitions that the jobs of an object can use; none if the caller may not read them. */
export async function listDefinitions(deps: Deps, request: DefinitionRequest): Promise<Record<Kind, string[]>> {
  const namesOf = async (kind: Kind) => {
    const rows = await readDefinitions(deps, request, kind, { columns: ["name"] });
    return rows.flatMap(({ name }) => (typeof name === "string" ? [name] : [])).toSorted();
  };
  return { manifest: await namesOf("manifest"), cluster: await namesOf("cluster") };
}

async function manifestNamed(deps: Deps, request: DefinitionRequest, name: string): Promise<string> {
  const [row] = await readDefinitions(deps, request, "manifest", named(name));
  if (row === undefined) throw unknown(deps, request, "manifest", name, "");
  return jsonOf(parsed(ManifestRow, row, "manifest", name), "manifest");
}

/** @returns Undefined for the name of a cluster in the runner's file. */
async function clusterNamed(deps: Deps, request: DefinitionRequest, name: string): Promise<object | undefined> {
  const { rayClusters } = deps;
  if (rayClusters.includes(name)) return undefined;
  const [row] = await readDefinitions(deps, request, "cluster", named(name));
  if (row === undefined) throw unknown(deps, request, "cluster", name, `, and ${notOfRunner(rayClusters)}`);
  const { kuberay, cluster_type } = parsed(ClusterRow, row, "cluster", name);
  if (cluster_type === "EXTERNAL_RAY")
    throw new CatalogError(
      "InvalidInput",
      `cluster: ${JSON.stringify(name)} is a Ray cluster outside this platform, on which the runner runs no jobs`,
    );
  if (kuberay === null || kuberay === undefined) return {};
  const { head_group, worker_groups } = parsed(KubeRay, kuberay, "cluster", name);
  if ([head_group, ...worker_groups].some(({ k8s_spec_override: override }) => hasOverride(override)))
    throw new CatalogError(
      "InvalidInput",
      `cluster: the definition ${JSON.stringify(name)} has k8s_spec_override, which this platform does not accept: define it without`,
    );
  const { num_cpus, memory } = head_group;
  return {
    head_group: { num_cpus, memory },
    worker_groups: worker_groups.map(({ k8s_spec_override: _, name: group, ...worker }, index) => ({
      ...worker,
      name: group ?? `worker-${index}`,
    })),
  };
}

/** Requires a cluster of the runner's file, if a policy names one. @throws CatalogError InvalidInput */
export function requireRunnerCluster(rayClusters: readonly string[], name: string | undefined): void {
  if (name === undefined || rayClusters.includes(name)) return;
  throw new CatalogError("InvalidInput", `cluster: ${JSON.stringify(name)} is ${notOfRunner(rayClusters)}`);
}

function notOfRunner(rayClusters: readonly string[]): string {
  return `not one of the runner's in TILTYARD_RAY_CLUSTERS: ${rayClusters.join(", ")}`;
}

function hasOverride(override: unknown): boolean {
  return typeof override === "object" && override !== null && Object.keys(override).length > 0;
}

async function readDefinitions(
  { store, rows, isolatedNamespaces }: Deps,
  { id, caller }: DefinitionRequest,
  kind: Kind,
  wanted: Omit<ArgsOf<ReadOperations["records"]>, "limit">,
): Promise<readonly Readonly<Record<string, unknown>>[]> {
  const table = [...systemNamespaceOf(id, isolatedNamespaces), tables[kind]];
  const isReadable = isAllowed(caller.principal, { role: "reader", object: table });
  if (!isReadable || (await findTable(store.read, table)) === undefined) return [];
  const at = { id: table, caller: catalogOrigin };
  return (await rows.read("records", at, { ...wanted, limit: definitionsMax })).result;
}

function named(name: string) {
  return { filter: toExpression(`name = ${literal(name)}`) };
}

function parsed<Output>(schema: z.ZodType<Output>, row: unknown, kind: Kind, name: string): Output {
  const { data, error } = schema.safeParse(row, parsing);
  if (error === undefined) return data as Output;
  const problems = problemsIn(error, "its row").join("; ");
  throw new CatalogError("InvalidInput", `${kind}: the definition ${JSON.stringify(name)} is not valid: ${problems}`);
}

function unknown({ isolatedNamespaces }: Deps, { id }: DefinitionRequest, kind: Kind, name: string, more: string) {
  const table = formatIdentifier([...systemNamespaceOf(id, isolatedNamespaces), tables[kind]]);
  return new CatalogError(
    "InvalidInput",
    `${kind}: ${JSON.stringify(name.slice(0, nameShown))} is not a definition that you may read in ${table}${more}`,
  );
}

/** Creates the namespace of Geneva's records before the first function of a table. Geneva's clients expect it to exist. */
export async function ensureSystemNamespace(
  { store, isolatedNamespaces }: Pick<Deps, "store" | "isolatedNamespaces">,
  caller: Origin,
  table: Identifier,
): Promise<void> {
  const identifier = systemNamespaceOf(table, isolatedNamespaces);
  if ((await findNamespace(store.read, identifier)) !== undefined) return;
  const { operationId: operation } = contracts.createNamespace;
  const audit = prepareAudit({ caller: { ...caller, operation }, objects: [identifier] });
  await store.write(async (session) => {
    if ((await findNamespace(session, identifier)) !== undefined) return;
    // The isolated namespace may have been dropped since this request started.
    if (identifier.length > 1 && (await findNamespace(session, identifier.slice(0, -1))) === undefined) return;
    await insertNamespace(session, { identifier, properties: {} });
    await audit.record(session);
  });
}
