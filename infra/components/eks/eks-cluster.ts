import type * as eks from "@pulumi/eks";
import * as pulumi from "@pulumi/pulumi";
import type { Cluster, ClusterAccess, ClusterSubject, Database, TeamClient, TeamClientArgs } from "../../cluster.ts";
import type { EksConfig } from "../../config.ts";
import type { Architecture } from "../../machines.ts";
import { ClusterProvider } from "../cluster-provider.ts";
import { componentName } from "../component-name.ts";
import { createAutoscaler } from "./cluster-autoscaler.ts";
import { createContainerLogs } from "./container-logs.ts";
import { createDevicePlugin } from "./device-plugin.ts";
import type { EksAccount } from "./eks-account.ts";
import { type AddonDeps, createDns, createNodeMonitoring, createVolumes, storageClassName } from "./eks-addons.ts";
import { createControlPlane, kubeconfigOf } from "./eks-control-plane.ts";
import { createRds } from "./eks-database.ts";
import { grantKeyToNodes } from "./eks-encryption.ts";
import { adoptedNetwork, type EksNetwork } from "./eks-network.ts";
import { createAdminRole, createClientRole, createNodeRole, createTeamRole, type RoleDeps } from "./eks-roles.ts";
import { EksServices } from "./eks-services.ts";
import type { EksZones } from "./eks-zones.ts";
import type { LogGroups } from "./log-groups.ts";
import { createNodeGroups } from "./node-groups.ts";
import { Vpc } from "./vpc.ts";

export interface EksClusterArgs {
  readonly config: EksConfig;
  readonly account: EksAccount;
  readonly zones: EksZones;
  /** The log groups that exist, according to {@link findLogGroups}. */
  readonly logGroups: LogGroups;
}

/** An EKS cluster with private nodes, its network, node groups, add-ons, bucket and roles. */
export class EksCluster extends pulumi.ComponentResource implements Cluster {
  readonly isOwn = true;
  readonly kubernetes: ClusterProvider;
  readonly access: ClusterAccess & { readonly kubeconfig: pulumi.Output<string> };
  readonly services: EksServices;
  readonly storageClass = storageClassName;
  readonly coreSelector: Readonly<Record<string, string>>;
  readonly architecture: Architecture;
  /** By default none: Geneva's clients expect a client role that administers the cluster, which needs no binding. */
  readonly clients: readonly ClusterSubject[];
  readonly nodes: readonly pulumi.Resource[];
  readonly #name: string;
  readonly #config: EksConfig;
  readonly #zones: EksZones;
  readonly #logGroups: LogGroups;
  readonly #vpc: EksNetwork;
  readonly #cluster: eks.Cluster;
  readonly #deps: RoleDeps;

  constructor(name: string, args: EksClusterArgs, options?: pulumi.ComponentResourceOptions) {
    super("tiltyard:infra:EksCluster", componentName(name), {}, options);
    const { config, account, zones, logGroups } = args;
    this.#name = name;
    this.#config = config;
    this.#zones = zones;
    this.#logGroups = logGroups;
    this.coreSelector = config.nodeSelectors.core;
    this.architecture = config.architectures.core;
    this.#vpc = this.#createNetwork();
    this.#cluster = createControlPlane(name, { config, vpc: this.#vpc, logGroups }, this);
    const { name: clusterName, arn: clusterArn } = this.#cluster.eksCluster;
    this.#deps = { parent: this, config, account, clusterName, clusterArn };
    this.services = this.#createServices();
    const client = createClientRole(`${name}-client`, this.services.bucket, this.#deps);
    this.clients = client.group === undefined ? [] : [{ kind: "Group", name: client.group }];
    this.access = this.#createAccess(client.arn);
    this.kubernetes = new ClusterProvider(
      `${name}-kubernetes`,
      // A preview does not know a new role of administrators. Without an identifier, the provider would consider that
      // kubeconfig to be of another cluster, and plan to replace all objects. No two clusters have one endpoint.
      { kubeconfig: this.access.kubeconfig, clusterIdentifier: this.#cluster.eksCluster.endpoint },
      { parent: this },
    );
    this.nodes = this.#createNodes();
    this.registerOutputs();
  }

  #createNetwork(): EksNetwork {
    const [config, zones] = [this.#config, this.#zones];
    const { network } = config;
    if (network.isAdopted) return adoptedNetwork(network.vpc, zones.subnets);
    return new Vpc(`${this.#name}-vpc`, { config, network, zones: zones.network }, { parent: this });
  }

  #createServices(): EksServices {
    const { config, account, clusterArn } = this.#deps;
    const cidrs = config.network.isAdopted ? this.#zones.cidrs : [config.network.cidr];
    const args = { config, partition: account.partition, clusterArn, oidcProvider: this.#oidcProvider, cidrs };
    return new EksServices(this.#name, args, this);
  }

  get #oidcProvider() {
    const { oidcProviderArn, oidcProviderUrl } = this.#cluster;
    return pulumi.all([oidcProviderArn, oidcProviderUrl]).apply(([arn, url]) => ({ arn, url }));
  }

  /** Creates the role of administrators. @returns The access data of clients. */
  #createAccess(roleName: pulumi.Output<string>) {
    const kubeconfigFor = (role: pulumi.Output<string>) => kubeconfigOf(this.#cluster, role);
    const adminRole = createAdminRole(`${this.#name}-admin`, this.#deps, kubeconfigFor);
    return {
      clusterName: this.#deps.clusterName,
      configMethod: "EKS_AUTH",
      region: this.#config.region,
      roleName,
      kubeconfig: pulumi.secret(kubeconfigOf(this.#cluster, adminRole)),
      kubernetesVersion: this.#cluster.eksCluster.version,
    } as const;
  }

  /** Creates node groups with their add-ons. */
  #createNodes(): readonly pulumi.Resource[] {
    const name = this.#name;
    const { config, account } = this.#deps;
    const addons = this.#addonDeps;
    const volumes = createVolumes(`${name}-ebs`, addons);
    const { role, rights } = createNodeRole(`${name}-nodes`, this.#deps);
    const key = grantKeyToNodes(`${name}-key`, { encryptionKey: config.encryptionKey, account }, this);
    // The component of the cluster includes the VPC CNI, without which nodes do not become ready.
    const needs = [this.#cluster, ...rights, ...this.#vpc.routes, ...volumes.rights, ...key];
    const groups = createNodeGroups(name, { ...addons, zones: this.#zones, vpc: this.#vpc, role, needs });
    const driver = volumes.createDriver(groups);
    const storageClass = volumes.createClass(driver);
    createDns(`${name}-coredns`, addons, groups);
    createNodeMonitoring(`${name}-node-monitoring`, addons, groups);
    createContainerLogs(`${name}-container-logs`, { ...addons, logGroups: this.#logGroups }, groups);
    createDevicePlugin(`${name}-nvidia`, addons, groups);
    const autoscaler = createAutoscaler(`${name}-autoscaler`, addons, groups);
    return [...groups, driver, storageClass, ...autoscaler];
  }

  get #addonDeps(): AddonDeps {
    const { config, account } = this.#deps;
    const { name, arn, version } = this.#cluster.eksCluster;
    return {
      ...{ config, account, services: this.services, kubernetes: this.kubernetes, parent: this },
      ...{ cluster: { name, arn, version }, oidcProvider: this.#oidcProvider },
    };
  }

  createTeamClient(team: string, args: TeamClientArgs): TeamClient {
    const { bucket } = this.services;
    const { group, roleName } = createTeamRole(`${this.#name}-client-${team}`, { ...args, team, bucket }, this.#deps);
    return { clients: [{ kind: "Group", name: group }], roleName };
  }

  createDatabase({ replicas }: { readonly replicas: number }): Database {
    const config = this.#config;
    const clusterSecurityGroupId = this.#cluster.eksCluster.vpcConfig.clusterSecurityGroupId;
    return createRds(`${this.#name}-database`, { config, vpc: this.#vpc, replicas, clusterSecurityGroupId }, this);
  }
}
