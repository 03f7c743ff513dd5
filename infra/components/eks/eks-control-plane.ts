import * as aws from "@pulumi/aws";
import * as eks from "@pulumi/eks";
import * as pulumi from "@pulumi/pulumi";
import type { EksConfig } from "../../config.ts";
import { versions } from "../../versions.ts";
import { addonVersion } from "./eks-addons.ts";
import type { EksNetwork } from "./eks-network.ts";

/** How many days the logs of the control plane are kept; EKS would create a group that keeps them forever. */
const logDays = 90;

export interface ControlPlaneArgs {
  readonly config: EksConfig;
  readonly vpc: EksNetwork;
  /** Whether the log group exists, according to {@link findControlPlaneLogs}. */
  readonly hasLogs: boolean;
}

/**
 * Looks up the log group of the control plane. EKS writes its last lines after a stack has deleted the group, and so
 * creates the group again; the next stack adopts it.
 */
export async function findControlPlaneLogs(config: EksConfig): Promise<boolean> {
  const name = logGroupName(config);
  const { logGroupNames } = await aws.cloudwatch.getLogGroups({ logGroupNamePrefix: name });
  return logGroupNames.includes(name);
}

function logGroupName({ clusterName }: EksConfig): string {
  return `/aws/eks/${clusterName}/cluster`;
}

/**
 * The cluster itself, without any node. `eks.Cluster` makes of itself: the cluster's own role and security group, the
 * OIDC provider, the add-ons `vpc-cni` and `kube-proxy`, and the kubeconfig; and it makes the creator of the cluster
 * its administrator. It makes no node group and no role of nodes, and so no entry for one: its entry would go before
 * the nodes, which could then not report that they are drained.
 */
export function createControlPlane(
  name: string,
  { config, vpc, hasLogs }: ControlPlaneArgs,
  parent: pulumi.Resource,
): eks.Cluster {
  const { network, clusterName, credentials, kubernetesVersion = versions.kubernetes } = config;
  const logs = new aws.cloudwatch.LogGroup(
    `${name}-logs`,
    { name: logGroupName(config), retentionInDays: logDays },
    { parent, ...(hasLogs && { import: logGroupName(config) }) },
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
      ...(network.authorizedNetworks.length > 0 && { publicAccessCidrs: network.authorizedNetworks }),
      enabledClusterLogTypes: ["api", "audit", "authenticator"],
      skipDefaultNodeGroup: true,
      skipDefaultSecurityGroups: true,
      createInstanceRole: false,
      nodeAssociatePublicIpAddress: false,
      // `aws eks get-token` runs as the same principal as the provider, not as the one of the shell.
      providerCredentialOpts: credentials,
      // Prefixes give a node room for many more pods; policies limit the catalog to its callers.
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
    { parent, dependsOn: [logs] },
  );
}

/**
 * The cluster's kubeconfig. It has no credential in it: it calls `aws eks get-token`.
 *
 * @param adminRole The role that it assumes, so that all administrators share one; undefined for the caller itself.
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

/** Leaves out the provider's role: administrators assume the admin role directly. */
function withoutRole(args: readonly string[]): string[] {
  const at = args.indexOf("--role");
  return at < 0 ? [...args] : args.toSpliced(at, 2);
}
