import * as gcp from "@pulumi/gcp";
import * as kubernetes from "@pulumi/kubernetes";
import * as pulumi from "@pulumi/pulumi";
import { identityAnnotations } from "@tiltyard/protocol";
import type { Cluster, ClusterAccess, ClusterSubject, ImageRepository } from "../../cluster.ts";
import { nodeSelector, type StackConfig } from "../../config.ts";
import { GkeBucket } from "./gke-bucket.ts";
import { createCloudSql } from "./gke-database.ts";
import { GkeNetwork } from "./gke-network.ts";
import { nodeDefaults, nodePoolArgs } from "./gke-node-pool.ts";

/** A regional GKE cluster with private nodes, its network, node pools, bucket and identities. */
export class GkeCluster extends pulumi.ComponentResource implements Cluster {
  readonly kubernetes: kubernetes.Provider;
  readonly access: ClusterAccess;
  readonly bucketUri: pulumi.Output<string>;
  readonly storageClass = "premium-rwo";
  readonly coreSelector: Readonly<Record<string, string>>;
  readonly clients: readonly ClusterSubject[];
  readonly nodes: readonly pulumi.Resource[];
  readonly #name: string;
  readonly #config: StackConfig;
  readonly #network: GkeNetwork;
  readonly #bucket: GkeBucket;
  readonly #nodeAccount: gcp.serviceaccount.Account;

  constructor(name: string, config: StackConfig, options?: pulumi.ComponentResourceOptions) {
    super("tiltyard:infra:GkeCluster", name, {}, options);
    this.#name = name;
    this.#config = config;
    this.#network = new GkeNetwork(`${name}-network`, config, { parent: this });
    this.#nodeAccount = createNodeAccount(this, name, config);
    const cluster = createCluster(this, name, config, this.#network, this.#nodeAccount);
    this.nodes = createNodePools(this, name, config, cluster, this.#nodeAccount);
    this.#bucket = new GkeBucket(`${name}-bucket`, config, { parent: this });
    const client = createClientAccount(this, name, config, this.#bucket);

    const kubeconfig = pulumi.secret(kubeconfigOf(cluster));
    this.kubernetes = new kubernetes.Provider(
      `${name}-kubernetes`,
      { kubeconfig, enableServerSideApply: true },
      { parent: this },
    );
    this.access = {
      clusterName: cluster.name,
      configMethod: "GKE_AUTH",
      region: config.region,
      project: config.project,
      kubeconfig,
      kubernetesVersion: cluster.masterVersion,
    };
    this.bucketUri = this.#bucket.uri;
    this.coreSelector = nodeSelector(config, "core");
    this.clients = [{ kind: "User", name: client.email }];
    this.registerOutputs();
  }

  /** A cloud service account for exactly one service account of Kubernetes; requirements.md 5.1, variant A. */
  bucketIdentity(name: string, serviceAccount: string): pulumi.Output<Record<string, string>> {
    const { project, namespace } = this.#config;
    const account = createAccount(this, `${this.#name}-${name}`, `Pods of ${namespace}/${serviceAccount}`);
    this.#bucket.allowObjects(`${this.#name}-${name}`, account, this);
    new gcp.serviceaccount.IAMMember(
      `${this.#name}-${name}-identity`,
      {
        serviceAccountId: account.name,
        role: "roles/iam.workloadIdentityUser",
        member: `serviceAccount:${project}.svc.id.goog[${namespace}/${serviceAccount}]`,
      },
      { parent: this },
    );
    return account.email.apply((email): Record<string, string> => ({ [identityAnnotations.GKE_AUTH]: email }));
  }

  /** Google's tokens are made less by whoever has them. */
  vendingRole(): undefined {}

  imageRepository(): ImageRepository {
    const { region, project } = this.#config;
    const repository = new gcp.artifactregistry.Repository(
      `${this.#name}-images`,
      {
        format: "DOCKER",
        location: region,
        repositoryId: `${this.#config.clusterName}-images`,
        cleanupPolicies: [{ id: "keep-ten", action: "KEEP", mostRecentVersions: { keepCount: 10 } }],
      },
      { parent: this },
    );
    new gcp.artifactregistry.RepositoryIamMember(
      `${this.#name}-images-pull`,
      {
        location: region,
        repository: repository.name,
        role: "roles/artifactregistry.reader",
        member: pulumi.interpolate`serviceAccount:${this.#nodeAccount.email}`,
      },
      { parent: this },
    );
    const address = `${region}-docker.pkg.dev`;
    const token = gcp.organizations.getClientConfigOutput({ parent: this }).accessToken;
    return {
      name: pulumi.interpolate`${address}/${project}/${repository.repositoryId}/tiltyard-catalog`,
      registry: { address, username: "oauth2accesstoken", password: pulumi.secret(token) },
    };
  }

  database({ replicas }: { readonly replicas: number }): pulumi.Output<string> {
    return createCloudSql(`${this.#name}-database`, this.#config, this.#network, { replicas, parent: this });
  }
}

/** An account id has 30 characters at most, and is taken for 30 days after it was deleted: it gets a suffix. */
function createAccount(parent: pulumi.Resource, name: string, displayName: string): gcp.serviceaccount.Account {
  return new gcp.serviceaccount.Account(name, { displayName }, { parent });
}

function createNodeAccount(parent: pulumi.Resource, name: string, { project }: StackConfig) {
  const account = createAccount(parent, `${name}-nodes`, "Nodes of the cluster");
  new gcp.projects.IAMMember(
    `${name}-nodes-role`,
    {
      project,
      // Writes logs and metrics; no access to any data.
      role: "roles/container.defaultNodeServiceAccount",
      member: pulumi.interpolate`serviceAccount:${account.email}`,
    },
    { parent },
  );
  return account;
}

/** The account that programs impersonate to make Ray clusters, and who may do so. */
function createClientAccount(parent: pulumi.Resource, name: string, config: StackConfig, bucket: GkeBucket) {
  const account = createAccount(parent, `${name}-client`, "Makes Ray clusters");
  new gcp.projects.IAMMember(
    `${name}-client-cluster`,
    {
      project: config.project,
      // Finds the cluster and signs in to it; what it may do there is the matter of its role in the namespace.
      role: "roles/container.clusterViewer",
      member: pulumi.interpolate`serviceAccount:${account.email}`,
    },
    { parent },
  );
  bucket.allowObjects(`${name}-client`, account, parent);
  for (const [index, member] of config.clientPrincipals.entries())
    new gcp.serviceaccount.IAMMember(
      `${name}-client-principal-${index}`,
      { serviceAccountId: account.name, role: "roles/iam.serviceAccountTokenCreator", member },
      { parent },
    );
  return account;
}

function createCluster(
  parent: pulumi.Resource,
  name: string,
  config: StackConfig,
  { network, subnetwork, nat }: GkeNetwork,
  nodeAccount: gcp.serviceaccount.Account,
) {
  const { operator, kubernetesVersion, network: ranges } = config;
  return new gcp.container.Cluster(
    name,
    {
      name: config.clusterName,
      location: config.region,
      network: network.id,
      subnetwork: subnetwork.id,
      networkingMode: "VPC_NATIVE",
      ipAllocationPolicy: {
        clusterSecondaryRangeName: GkeNetwork.podRange,
        servicesSecondaryRangeName: GkeNetwork.serviceRange,
      },
      // Enforces network policies.
      datapathProvider: "ADVANCED_DATAPATH",
      releaseChannel: { channel: "REGULAR" },
      ...(kubernetesVersion !== undefined && { minMasterVersion: kubernetesVersion }),
      workloadIdentityConfig: { workloadPool: `${config.project}.svc.id.goog` },
      enableShieldedNodes: true,
      privateClusterConfig: {
        enablePrivateNodes: true,
        enablePrivateEndpoint: !ranges.publicEndpoint,
        masterIpv4CidrBlock: ranges.controlPlaneCidr,
      },
      ...((!ranges.publicEndpoint || ranges.authorizedNetworks.length > 0) && {
        masterAuthorizedNetworksConfig: {
          cidrBlocks: ranges.authorizedNetworks.map((cidrBlock) => ({ cidrBlock })),
        },
      }),
      addonsConfig: {
        gcePersistentDiskCsiDriverConfig: { enabled: true },
        rayOperatorConfigs: [
          {
            enabled: operator.source === "gke-addon",
            rayClusterLoggingConfig: { enabled: operator.source === "gke-addon" },
            rayClusterMonitoringConfig: { enabled: operator.source === "gke-addon" },
          },
        ],
      },
      loggingConfig: { enableComponents: ["SYSTEM_COMPONENTS", "WORKLOADS"] },
      monitoringConfig: { enableComponents: ["SYSTEM_COMPONENTS"], managedPrometheus: { enabled: true } },
      securityPostureConfig: { mode: "BASIC", vulnerabilityMode: "VULNERABILITY_DISABLED" },
      costManagementConfig: { enabled: true },
      // The pool that every cluster is born with goes at once; the stack's own pools have the nodes.
      removeDefaultNodePool: true,
      initialNodeCount: 1,
      nodeConfig: nodeDefaults(nodeAccount.email),
      deletionProtection: config.deletionProtection,
    },
    // GKE fills in what the first pool was made with, and moves the version on by itself.
    { parent, dependsOn: [nat], ignoreChanges: ["nodeConfig", "initialNodeCount"] },
  );
}

function createNodePools(
  parent: pulumi.Resource,
  name: string,
  config: StackConfig,
  cluster: gcp.container.Cluster,
  nodeAccount: gcp.serviceaccount.Account,
) {
  return config.nodePools.map(
    (pool) =>
      new gcp.container.NodePool(`${name}-${pool.name}`, nodePoolArgs(config, pool, cluster, nodeAccount.email), {
        parent,
        ignoreChanges: ["initialNodeCount", "nodeCount"],
      }),
  );
}

/** A kubeconfig with no credential in it: Google's own plugin gets one when it is used. */
function kubeconfigOf(cluster: gcp.container.Cluster): pulumi.Output<string> {
  return pulumi
    .all([cluster.name, cluster.endpoint, cluster.masterAuth.clusterCaCertificate])
    .apply(([name, endpoint, certificate]) =>
      JSON.stringify({
        apiVersion: "v1",
        kind: "Config",
        clusters: [{ name, cluster: { server: `https://${endpoint}`, "certificate-authority-data": certificate } }],
        users: [
          {
            name,
            user: {
              exec: {
                apiVersion: "client.authentication.k8s.io/v1beta1",
                command: "gke-gcloud-auth-plugin",
                provideClusterInfo: true,
                interactiveMode: "Never",
              },
            },
          },
        ],
        contexts: [{ name, context: { cluster: name, user: name } }],
        "current-context": name,
      }),
    );
}
