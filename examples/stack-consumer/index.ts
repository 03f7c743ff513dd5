/**
 * Another Pulumi program that builds on a Tiltyard stack: it provides Ray jobs with a key of the catalog, in
 * the secret that `catalog_key_secret: catalog-key` in a cluster's file names.
 *
 *   pulumi config set stack my-organization/tiltyard/gke
 *   pulumi config set --secret apiKey ...    # of: tiltyard keys create jobs --role writer
 */
import * as kubernetes from "@pulumi/kubernetes";
import * as pulumi from "@pulumi/pulumi";

const config = new pulumi.Config();
const tiltyard = new pulumi.StackReference(config.require("stack"));

// A stack on an existing cluster has no kubeconfig output. This program then uses your kubeconfig with the stack's
// context.
const provider = new kubernetes.Provider("tiltyard", {
  kubeconfig: tiltyard.getOutput("kubeconfig"),
  context: tiltyard.getOutput("kubeContext"),
});
new kubernetes.core.v1.Secret(
  "catalog-key",
  {
    metadata: { name: "catalog-key", namespace: tiltyard.requireOutput("namespace") },
    stringData: { apiKey: config.requireSecret("apiKey") },
  },
  { provider },
);

export const catalogUrl = tiltyard.requireOutput("catalogUrl");
export const bucketUri = tiltyard.requireOutput("bucketUri");
