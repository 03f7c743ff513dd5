import { listDefinitions } from "../../rows/definitions.ts";
import type { Handler } from "../handler.ts";

/** Lists the definitions for the jobs of the tables in a namespace. */
export const listJobDefinitions: Handler<"listJobDefinitions"> = async ({ id }, catalog, caller) => {
  const { manifest, cluster } = await listDefinitions(catalog, { id: [...id, "table"], caller });
  return { manifests: manifest, clusters: cluster, runner_clusters: [...(catalog.rayClusters ?? [])] };
};
