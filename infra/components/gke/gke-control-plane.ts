import { KubeConfig } from "@kubernetes/client-node";
import * as gcp from "@pulumi/gcp";
import * as pulumi from "@pulumi/pulumi";
import type { GkeConfig } from "../../config.ts";
import { openNetworks } from "../../settings/network-settings.ts";
import { LiveObjects } from "../cluster-provider.ts";
import { refuseJobsAnywhere } from "../ray/running-jobs.ts";
import type { GkeNetwork } from "./gke-network.ts";
import { nodeDefaults } from "./gke-node-pool.ts";

export interface ControlPlaneArgs {
  readonly config: GkeConfig;
  readonly project: pulumi.Output<string>;
  readonly network: GkeNetwork;
  readonly nodeEmail: pulumi.Output<string>;
  /** The key of secrets; Google's own key if undefined. */
  readonly key: pulumi.Output<string> | undefined;
}

/** Creates the regional cluster without nodes. */
export function createControlPlane(
  name: string,
  { config, project, network, nodeEmail, key }: ControlPlaneArgs,
  parent: pulumi.Resource,
): gcp.container.Cluster {
  const { operator, kubernetesVersion, network: ranges, maintenance } = config;
  const hasRayAddon = operator.source === "gke-addon";
  return new gcp.container.Cluster(
    name,
    {
      project,
      name: config.clusterName,
      location: config.region,
      network: network.network,
      subnetwork: network.subnetwork,
      networkingMode: "VPC_NATIVE",
      ipAllocationPolicy: {
        clusterSecondaryRangeName: network.podRange,
        servicesSecondaryRangeName: network.serviceRange,
      },
      // This data plane enforces network policies.
      datapathProvider: "ADVANCED_DATAPATH",
      releaseChannel: { channel: config.releaseChannel },
      ...(kubernetesVersion !== undefined && { minMasterVersion: kubernetesVersion }),
      maintenancePolicy: {
        recurringWindow: { startTime: maintenance.start, endTime: maintenance.end, recurrence: maintenance.recurrence },
      },
      workloadIdentityConfig: { workloadPool: `${config.project}.svc.id.goog` },
      enableShieldedNodes: true,
      privateClusterConfig: {
        enablePrivateNodes: true,
        enablePrivateEndpoint: !ranges.publicEndpoint,
        masterIpv4CidrBlock: ranges.controlPlaneCidr,
      },
      // Google's front end has a DNS name, by which principals with access to the cluster reach it from any network.
      controlPlaneEndpointsConfig: { dnsEndpointConfig: { allowExternalTraffic: !ranges.publicEndpoint } },
      masterAuthorizedNetworksConfig: { cidrBlocks: openNetworks(ranges).map((cidrBlock) => ({ cidrBlock })) },
      addonsConfig: {
        gcePersistentDiskCsiDriverConfig: { enabled: true },
        rayOperatorConfigs: [
          {
            enabled: hasRayAddon,
            rayClusterLoggingConfig: { enabled: hasRayAddon },
            rayClusterMonitoringConfig: { enabled: hasRayAddon },
          },
        ],
      },
      ...(config.catalog.gateway !== undefined && { gatewayApiConfig: { channel: "CHANNEL_STANDARD" } }),
      loggingConfig: { enableComponents: ["SYSTEM_COMPONENTS", "WORKLOADS"] },
      monitoringConfig: { enableComponents: ["SYSTEM_COMPONENTS"], managedPrometheus: { enabled: true } },
      securityPostureConfig: { mode: "BASIC", vulnerabilityMode: "VULNERABILITY_DISABLED" },
      costManagementConfig: { enabled: true },
      // The default pool of a new cluster is deleted immediately; nodes belong to the pools of the stack.
      removeDefaultNodePool: true,
      initialNodeCount: 1,
      // The default pool has one node in each zone for some minutes. Their disks must fit the SSD quota of a new
      // project.
      nodeConfig: { ...nodeDefaults(nodeEmail), diskType: "pd-standard", diskSizeGb: 30 },
      // Without this option, the provider would keep the key of the last `up`.
      databaseEncryption: key === undefined ? { state: "DECRYPTED" } : { state: "ENCRYPTED", keyName: key },
      deletionProtection: config.deletionProtection,
    },
    {
      parent,
      dependsOn: [...network.needs],
      // Without this option, a replacement would delete everything in the cluster before Google refuses to delete it.
      protect: config.deletionProtection,
      // GKE sets the configuration of the first pool and upgrades the version itself.
      ignoreChanges: ["nodeConfig", "initialNodeCount"],
      hooks: { beforeUpdate: [keepAddonOfJobs(name, config)] },
    },
  );
}

/** The properties of a cluster by which clients reach it. */
type Reached = pulumi.Unwrap<
  Pick<gcp.container.Cluster, "name" | "endpoint" | "masterAuth" | "controlPlaneEndpointsConfig">
>;

/** Creates a check that refuses to remove the Ray operator add-on from a cluster with Ray jobs. */
function keepAddonOfJobs(name: string, config: GkeConfig): pulumi.ResourceHook {
  const check = async ({ newInputs, oldInputs, oldOutputs }: pulumi.ResourceHookArgs) => {
    if (!hasAddon(oldInputs) || hasAddon(newInputs)) return;
    const kubeconfig = new KubeConfig();
    kubeconfig.loadFromString(kubeconfigText(oldOutputs as Reached, config));
    await refuseJobsAnywhere(new LiveObjects(kubeconfig));
  };
  return new pulumi.ResourceHook(`${name}-addon`, check, { onDryRun: true });
}

function hasAddon(inputs: pulumi.ResourceHookArgs["newInputs"]): boolean {
  return inputs?.addonsConfig?.rayOperatorConfigs?.[0]?.enabled === true;
}

/**
 * Returns a kubeconfig without a credential. Google's plugin obtains one from the application default credentials at
 * each use, like Pulumi itself. A machine without a gcloud login has those too.
 */
export function kubeconfigOf(cluster: gcp.container.Cluster, config: GkeConfig): pulumi.Output<string> {
  const { name, endpoint, masterAuth, controlPlaneEndpointsConfig } = cluster;
  return pulumi
    .output({ name, endpoint, masterAuth, controlPlaneEndpointsConfig })
    .apply((reached) => kubeconfigText(reached as Reached, config));
}

function kubeconfigText({ name, endpoint, masterAuth, controlPlaneEndpointsConfig }: Reached, { network }: GkeConfig) {
  const cluster = network.publicEndpoint
    ? { server: `https://${endpoint}`, "certificate-authority-data": masterAuth.clusterCaCertificate }
    : // Its certificate is publicly trusted.
      { server: `https://${controlPlaneEndpointsConfig.dnsEndpointConfig?.endpoint}` };
  const exec = {
    apiVersion: "client.authentication.k8s.io/v1beta1",
    command: "gke-gcloud-auth-plugin",
    args: ["--use_application_default_credentials"],
    provideClusterInfo: true,
    interactiveMode: "Never",
  };
  return JSON.stringify({
    apiVersion: "v1",
    kind: "Config",
    clusters: [{ name, cluster }],
    users: [{ name, user: { exec } }],
    contexts: [{ name, context: { cluster: name, user: name } }],
    "current-context": name,
  });
}
