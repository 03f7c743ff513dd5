import * as eks from "@pulumi/eks";
import * as pulumi from "@pulumi/pulumi";
import type { EksConfig } from "../../config.ts";
import { openNetworks } from "../../settings/network-settings.ts";
import { versions } from "../../versions.ts";
import { addonVersion } from "./eks-addons.ts";
import type { EksNetwork } from "./eks-network.ts";
import { controlPlaneLogs, createLogGroup, type LogGroups } from "./log-groups.ts";

/** The retention of the control plane's logs in days. EKS itself would create a log group without a limit. */
const logDays = 90;

export interface ControlPlaneArgs {
  readonly config: EksConfig;
  readonly vpc: EksNetwork;
  readonly logGroups: LogGroups;
}

/**
 * Creates the cluster without nodes. `eks.Cluster` also creates the role and the security group of the cluster, the
 * OIDC provider, the add-ons `vpc-cni` and `kube-proxy`, and the kubeconfig, and its creator becomes an administrator.
 * It creates no node group, no role of nodes and no access entry for one: its entry would be deleted before the nodes,
 * which could then not report that they are drained.
 */
export function createControlPlane(
  name: string,
  { config, vpc, logGroups }: ControlPlaneArgs,
  parent: pulumi.Resource,
): eks.Cluster {
  const { network, clusterName, credentials, kubernetesVersion = versions.kubernetes } = config;
  const logs = createLogGroup(
    `${name}-logs`,
    { name: controlPlaneLogs(config), retentionInDays: logDays, existing: logGroups },
    parent,
  );
  return new eks.Cluster(
    name,
    {
      name: clusterName,
      version: kubernetesVersion,
      vpcId: vpc.id,
      publicSubnetIds: [...vpc.publicSubnetIds],
      privateSubnetIds: [...vpc.privateSubnetIds],
      authenticationMode: eks.AuthenticationMode.Api,
      createOidcProvider: true,
      endpointPrivateAccess: true,
      endpointPublicAccess: network.publicEndpoint,
      // AWS refuses them with a private endpoint.
      ...(network.publicEndpoint && { publicAccessCidrs: openNetworks(network) }),
      enabledClusterLogTypes: ["api", "audit", "authenticator"],
      skipDefaultNodeGroup: true,
      skipDefaultSecurityGroups: true,
      createInstanceRole: false,
      nodeAssociatePublicIpAddress: false,
      // `aws eks get-token` runs as the principal of the provider instead of that of the shell.
      providerCredentialOpts: credentials,
      // Prefixes allow many more pods on a node. Network policies restrict the callers of the catalog.
      vpcCniOptions: {
        enablePrefixDelegation: true,
        enableNetworkPolicy: true,
        addonVersion: addonVersion("vpc-cni", kubernetesVersion, parent),
      },
      kubeProxyAddonOptions: { version: addonVersion("kube-proxy", kubernetesVersion, parent) },
      upgradePolicy: { supportType: config.supportType },
      deletionProtection: config.deletionProtection,
      ...(config.encryptionKey !== undefined && { encryptionConfigKeyArn: config.encryptionKey }),
    },
    // Without this option, a replacement would delete everything in the cluster before AWS refuses to delete it.
    { parent, dependsOn: [logs], protect: config.deletionProtection },
  );
}

/**
 * Returns the kubeconfig of the cluster. It contains no credential but calls `aws eks get-token`.
 *
 * @param adminRole The role that all administrators assume; undefined to use the caller itself.
 */
export function kubeconfigOf(
  cluster: eks.Cluster,
  adminRole: pulumi.Output<string> | undefined,
): pulumi.Output<string> {
  if (adminRole === undefined) return cluster.kubeconfigJson;
  return pulumi.all([cluster.kubeconfigJson, adminRole]).apply(([json, role]) => withRole(json, role));
}

function withRole(json: string, role: string): string {
  const config: { users?: { user?: { exec?: { args?: string[] } } }[] } = JSON.parse(json);
  for (const { user } of config.users ?? [])
    if (user?.exec?.args !== undefined) user.exec.args = [...withoutRole(user.exec.args), "--role", role];
  return JSON.stringify(config);
}

/** Removes the provider's role, because administrators assume the admin role directly. */
function withoutRole(args: readonly string[]): string[] {
  const at = args.indexOf("--role");
  return at < 0 ? [...args] : args.toSpliced(at, 2);
}
