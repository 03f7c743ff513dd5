import type * as eks from "@pulumi/eks";
import * as kubernetes from "@pulumi/kubernetes";
import * as pulumi from "@pulumi/pulumi";
import type { Cluster, ClusterAccess, ClusterSubject, Database, TeamClient, TeamClientArgs } from "../../cluster.ts";
import type { EksConfig } from "../../config.ts";
import type { Architecture } from "../../machines.ts";
import { createAutoscaler } from "./cluster-autoscaler.ts";
import { createContainerLogs } from "./container-logs.ts";
import { createDevicePlugin } from "./device-plugin.ts";
import type { EksAccount } from "./eks-account.ts";
import { createDns, createVolumes, storageClassName } from "./eks-addons.ts";
import { createControlPlane, kubeconfigOf } from "./eks-control-plane.ts";
import { createRds } from "./eks-database.ts";
import { grantKeyToNodes } from "./eks-encryption.ts";
import { adoptedNetwork, type EksNetwork } from "./eks-network.ts";
import { createAdminRole, createClientRole, createNodeRole, createTeamRole, type RoleContext } from "./eks-roles.ts";
import { EksServices } from "./eks-services.ts";
import type { EksZones } from "./eks-zones.ts";
import { createNodeGroups } from "./node-groups.ts";
import { Vpc } from "./vpc.ts";

export interface EksClusterArgs {
  readonly config: EksConfig;
  readonly account: EksAccount;
  readonly zones: EksZones;
}

/** An EKS cluster with private nodes, its network, node groups, add-ons, bucket and roles. */
export class EksCluster extends pulumi.ComponentResource implements Cluster {
  readonly isOwn = true;
  readonly kubernetes: kubernetes.Provider;
  readonly access: ClusterAccess;
  readonly services: EksServices;
  readonly storageClass = storageClassName;
  readonly coreSelector: Readonly<Record<string, string>>;
  readonly architecture: Architecture;
  /** The client role is an administrator of the cluster, as requirements.md 5.1 wants it, and needs no binding. */
  readonly clients: readonly ClusterSubject[] = [];
  readonly nodes: readonly pulumi.Resource[];
  readonly #name: string;
  readonly #context: RoleContext;
  readonly #vpc: EksNetwork;
  readonly #cluster: eks.Cluster;

  constructor(name: string, { config, account, zones }: EksClusterArgs, options?: pulumi.ComponentResourceOptions) {
    super("tiltyard:infra:EksCluster", name, {}, options);
    const { partition } = account;
    const child = { parent: this };
    this.#name = name;
    const { network } = config;
    this.#vpc = network.isAdopted
      ? adoptedNetwork(network.vpc, zones.subnets)
      : new Vpc(`${name}-vpc`, { config, network, zones: zones.network }, child);
    this.#cluster = createControlPlane(name, config, this.#vpc, this);
    const { eksCluster, oidcProviderArn, oidcProviderUrl } = this.#cluster;
    const { name: clusterName, arn: clusterArn, version } = eksCluster;
    const oidcProvider = pulumi.all([oidcProviderArn, oidcProviderUrl]).apply(([arn, url]) => ({ arn, url }));
    this.#context = { parent: this, config, account, clusterName, clusterArn };
    const cidrs = network.isAdopted ? zones.cidrs : [network.cidr];
    this.services = new EksServices(name, { config, partition, clusterArn, oidcProvider, cidrs }, this);
    const clientRole = createClientRole(`${name}-client`, this.services.bucket, this.#context);
    const adminRole = createAdminRole(`${name}-admin`, this.#context);

    const kubeconfig = pulumi.secret(kubeconfigOf(this.#cluster, adminRole));
    this.kubernetes = new kubernetes.Provider(`${name}-kubernetes`, { kubeconfig, enableServerSideApply: true }, child);
    const addons = {
      config,
      account,
      services: this.services,
      kubernetes: this.kubernetes,
      cluster: { name: clusterName, arn: clusterArn, version },
      oidcProvider,
      parent: this,
    };
    const volumes = createVolumes(`${name}-ebs`, addons);
    const nodeRole = createNodeRole(`${name}-nodes`, this.#context, this.#cluster);
    const { encryptionKey } = config;
    const key = grantKeyToNodes(`${name}-key`, { encryptionKey, account }, this);
    const needs = [...nodeRole.rights, ...this.#vpc.routes, ...volumes.rights, ...key];
    const groups = createNodeGroups(name, { ...addons, zones, vpc: this.#vpc, role: nodeRole.role, needs });
    const driver = volumes.createDriver(groups);
    const storageClass = volumes.createClass(driver);
    createDns(`${name}-coredns`, addons, groups);
    createContainerLogs(`${name}-container-logs`, addons, groups);
    createDevicePlugin(`${name}-nvidia`, addons, groups);
    const autoscaler = createAutoscaler(`${name}-autoscaler`, addons, groups);

    this.nodes = [...groups, driver, storageClass, ...autoscaler];
    this.access = {
      clusterName,
      configMethod: "EKS_AUTH",
      region: config.region,
      roleName: clientRole.arn,
      kubeconfig,
      kubernetesVersion: version,
    };
    this.coreSelector = config.nodeSelectors.core;
    this.architecture = config.architectures.core;
    this.registerOutputs();
  }

  createTeamClient(team: string, args: TeamClientArgs): TeamClient {
    const { bucket } = this.services;
    const { group, roleName } = createTeamRole(
      `${this.#name}-client-${team}`,
      { ...args, team, bucket },
      this.#context,
    );
    return { clients: [{ kind: "Group", name: group }], roleName };
  }

  createDatabase({ replicas }: { readonly replicas: number }): Database {
    const { config } = this.#context;
    const clusterSecurityGroupId = this.#cluster.eksCluster.vpcConfig.clusterSecurityGroupId;
    return createRds(`${this.#name}-database`, { config, vpc: this.#vpc, replicas, clusterSecurityGroupId }, this);
  }
}
