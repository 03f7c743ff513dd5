import { findEksAccount } from "./components/eks/eks-account.ts";
import { EksCluster } from "./components/eks/eks-cluster.ts";
import { findControlPlaneLogs } from "./components/eks/eks-control-plane.ts";
import { findEksZones } from "./components/eks/eks-zones.ts";
import { findExistingEks } from "./components/eks/existing-eks.ts";
import { ExistingCluster } from "./components/existing-cluster.ts";
import { findExistingGke } from "./components/gke/existing-gke.ts";
import { GkeCluster } from "./components/gke/gke-cluster.ts";
import type { readDefinitions } from "./components/ray/chart-definitions.ts";
import type { EksConfig, GkeConfig, StackConfig } from "./config.ts";
import { deployOn, existingCluster, type Foundation, findDefinitions } from "./deploy-on.ts";
import type { Outputs } from "./outputs.ts";

/** The parts of a stack. */
export async function deploy(config: StackConfig, read?: typeof readDefinitions): Promise<Outputs> {
  const definitions = await findDefinitions(config, read);
  return deployOn({ ...(await createCluster(config)), definitions }, config);
}

type ClusterAndDatabase = Omit<Foundation, "definitions">;

async function createCluster(config: StackConfig): Promise<ClusterAndDatabase> {
  switch (config.variant) {
    case "existing":
      return { cluster: existingCluster("existing", config), database: config.catalog.database };
    case "existing-gke": {
      const services = await findExistingGke("existing", config);
      return { cluster: new ExistingCluster("existing", { ...config, services }), database: config.catalog.database };
    }
    case "existing-eks": {
      const services = await findExistingEks("existing", config);
      return { cluster: new ExistingCluster("existing", { ...config, services }), database: config.catalog.database };
    }
    case "gke":
      return withDatabase(new GkeCluster("gke", config), config);
    case "eks": {
      const [account, zones, hasLogs] = await Promise.all([
        findEksAccount(config),
        findEksZones(config),
        findControlPlaneLogs(config),
      ]);
      return withDatabase(new EksCluster("eks", { config, account, zones, hasLogs }), config);
    }
  }
}

/** Creates a PostgreSQL database of the cloud if the settings request one. */
function withDatabase(cluster: GkeCluster | EksCluster, { catalog }: GkeConfig | EksConfig): ClusterAndDatabase {
  const { enabled, database, replicas = 2 } = catalog;
  if (database !== "postgres") return { cluster, database };
  return { cluster, database: enabled ? cluster.createDatabase({ replicas }) : "sqlite" };
}
