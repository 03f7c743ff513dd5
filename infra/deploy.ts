import { findExistingEks } from "./components/eks/existing-eks.ts";
import { ExistingCluster } from "./components/existing-cluster.ts";
import { findExistingGke } from "./components/gke/existing-gke.ts";
import type { readDefinitions } from "./components/ray/chart-definitions.ts";
import type { EksConfig, GkeConfig, StackConfig } from "./config.ts";
import { deployOn, existingCluster, findDefinitions, type StackDeps } from "./deploy-on.ts";
import { createEks, type EksCluster } from "./eks.ts";
import { createGke, type GkeCluster } from "./gke.ts";
import type { Outputs } from "./outputs.ts";

/** The parts of a stack. */
export async function deploy(config: StackConfig, read?: typeof readDefinitions): Promise<Outputs> {
  const definitions = await findDefinitions(config, read);
  const created = await createCluster(config);
  return deployOn({ ...created, definitions }, created.config);
}

/** A cluster, its database, and the configuration with the parts that its region offers. */
type Created = Omit<StackDeps, "definitions"> & { readonly config: StackConfig };

async function createCluster(config: StackConfig): Promise<Created> {
  switch (config.variant) {
    case "existing":
      return { config, cluster: existingCluster("existing", config), database: config.catalog.database };
    case "existing-gke": {
      const services = await findExistingGke("existing", config);
      const cluster = new ExistingCluster("existing", { ...config, services });
      return { config, cluster, database: config.catalog.database };
    }
    case "existing-eks": {
      const services = await findExistingEks("existing", config);
      const cluster = new ExistingCluster("existing", { ...config, services });
      return { config, cluster, database: config.catalog.database };
    }
    case "gke":
      return withDatabase(await createGke("gke", config));
    case "eks":
      return withDatabase(await createEks("eks", config));
  }
}

/** Creates a PostgreSQL database of the cloud if the settings request one. */
function withDatabase({
  cluster,
  config,
}: {
  readonly cluster: GkeCluster | EksCluster;
  readonly config: GkeConfig | EksConfig;
}): Created {
  const { enabled, database, replicas = 2 } = config.catalog;
  if (database !== "postgres") return { config, cluster, database };
  return { config, cluster, database: enabled ? cluster.createDatabase({ replicas }) : "sqlite" };
}
