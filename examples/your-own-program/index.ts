/**
 * A Pulumi program of your own that deploys Ray and the catalog on a cluster of the program.
 *
 *   pulumi config set bucket s3://tables/lance
 *   pulumi config set --secret databaseUrl postgres://USER:PASSWORD@HOST/DATABASE
 */
import * as pulumi from "@pulumi/pulumi";
import { Catalog, ExistingCluster, RayPlatform, Runner } from "@tiltyard/infra";

const config = new pulumi.Config();

const cluster = new ExistingCluster("yard", {
  clusterName: "yard",
  bucket: config.require("bucket"),
  clientPrincipals: ["group:ml-engineers"],
});

const platform = new RayPlatform("ray", { cluster, namespace: "features" });

const catalog = new Catalog("catalog", {
  cluster,
  platform,
  image: "registry.example.com/tiltyard-catalog:0.1.0",
  database: { url: config.requireSecret("databaseUrl") },
  allowedNamespaces: ["notebooks"],
});

new Runner("runner", {
  cluster,
  platform,
  catalog,
  parameters: { image: "registry.example.com/tiltyard-ray:0.1.0" },
  rayClusters: { default: { worker_groups: [{ num_cpus: 8, memory: "32Gi", max_replicas: 20 }] } },
});

export const catalogUrl = catalog.url;
export const catalogApiKey = catalog.apiKey;
