import { readDefinitions } from "./chart-definitions.ts";
import type { Cluster, Database } from "./cluster.ts";
import { Catalog } from "./components/catalog/catalog.ts";
import { findEksAccount } from "./components/eks/eks-account.ts";
import { EksCluster } from "./components/eks/eks-cluster.ts";
import { findControlPlaneLogs } from "./components/eks/eks-control-plane.ts";
import { findEksZones } from "./components/eks/eks-zones.ts";
import { findExistingEks } from "./components/eks/existing-eks.ts";
import { ExistingCluster } from "./components/existing-cluster.ts";
import { findExistingGke } from "./components/gke/existing-gke.ts";
import { GkeCluster } from "./components/gke/gke-cluster.ts";
import { rayImages } from "./components/ray/ray-images.ts";
import { RayPlatform } from "./components/ray/ray-platform.ts";
import { Runner } from "./components/runner/runner.ts";
import type { EksConfig, GkeConfig, StackConfig } from "./config.ts";
import { type Outputs, rayParameters, stackOutputs } from "./outputs.ts";

/** The parts of a stack. */
export async function deploy(config: StackConfig, read = readDefinitions): Promise<Outputs> {
  const definitions = await findDefinitions(config, read);
  const { cluster, database } = await createCluster(config);
  const { namespace, serviceAccount, operator, monitoring, rayLogs, quota, teams, kueue, chartValues } = config;
  const deleteNamespace = "deleteNamespace" in config && config.deleteNamespace;
  const platform = new RayPlatform("ray", {
    ...{
      cluster,
      namespace,
      serviceAccount,
      operator,
      definitions,
      deleteNamespace,
      monitoring,
      rayLogs,
      quota,
      teams,
      kueue,
      chartValues,
    },
    allowedNamespaces: config.ray.allowedNamespaces,
    bucketAccess: config.ray.bucketAccess,
  });
  const images = rayImages("ray", config, cluster, platform);
  const { enabled, ...settings } = config.catalog;
  const deletionProtection = !("deletionProtection" in config) || config.deletionProtection;
  const imageDigests = "imageDigests" in config ? config.imageDigests : {};
  const args = {
    cluster,
    platform,
    deleteNamespace,
    deletionProtection,
    monitoring,
    imageDigests,
    ...settings,
    database,
  };
  const catalog = enabled ? new Catalog("catalog", args) : undefined;
  const { enabled: hasRunner, ...runnerSettings } = config.runner;
  const runner =
    hasRunner && catalog !== undefined
      ? new Runner("runner", {
          cluster,
          platform,
          catalog,
          parameters: rayParameters({ config, platform, images }),
          ...runnerSettings,
        })
      : undefined;
  return stackOutputs({ config, cluster, platform, images, database, catalog, runner });
}

/** The definitions that the stack manages; undefined where Helm, GKE or another operator does. */
async function findDefinitions({ operator }: StackConfig, read: typeof readDefinitions) {
  return operator.source === "helm" && operator.crds ? await read(operator) : undefined;
}

interface ClusterAndDatabase {
  readonly cluster: Cluster;
  /** The database of the catalog. */
  readonly database: "sqlite" | Database;
}

async function createCluster(config: StackConfig): Promise<ClusterAndDatabase> {
  switch (config.variant) {
    case "existing": {
      const { litestream, database } = config.catalog;
      const backups = typeof litestream === "object" ? litestream.bucket : undefined;
      return { cluster: new ExistingCluster("existing", { ...config, backups }), database };
    }
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
