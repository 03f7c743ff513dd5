import * as aws from "@pulumi/aws";
import * as eks from "@pulumi/eks";
import * as kubernetes from "@pulumi/kubernetes";
import * as pulumi from "@pulumi/pulumi";
import { identityAnnotations } from "@tiltyard/protocol";
import type { Cluster, ClusterAccess, ClusterSubject, ImageRepository } from "../../cluster.ts";
import { nodeSelector, type StackConfig } from "../../config.ts";
import { versions } from "../../versions.ts";
import { ClusterAddons } from "./cluster-addons.ts";
import { EksBucket } from "./eks-bucket.ts";
import { createRds } from "./eks-database.ts";
import { createRole } from "./iam-role.ts";
import { NodeGroup } from "./node-group.ts";
import {
  accessCluster,
  describeCluster,
  policyOf,
  trustPrincipals,
  trustService,
  trustServiceAccount,
  useBucket,
} from "./policies.ts";
import { Vpc } from "./vpc.ts";

/** An EKS cluster with private nodes, its network, node groups, add-ons, bucket and roles. */
export class EksCluster extends pulumi.ComponentResource implements Cluster {
  readonly kubernetes: kubernetes.Provider;
  readonly access: ClusterAccess;
  readonly bucketUri: pulumi.Output<string>;
  readonly storageClass: pulumi.Output<string>;
  readonly coreSelector: Readonly<Record<string, string>>;
  /** The client role is an administrator of the cluster, as requirements.md 5.1 wants it, and needs no binding. */
  readonly clients: readonly ClusterSubject[] = [];
  readonly nodes: readonly pulumi.Resource[];
  readonly #name: string;
  readonly #config: StackConfig;
  readonly #vpc: Vpc;
  readonly #bucket: EksBucket;
  readonly #clusterArn: pulumi.Output<string>;
  readonly #clusterSecurityGroupId: pulumi.Output<string>;
  readonly #oidcProvider: pulumi.Output<{ readonly arn: string; readonly url: string }>;

  constructor(name: string, config: StackConfig, options?: pulumi.ComponentResourceOptions) {
    super("tiltyard:infra:EksCluster", name, {}, options);
    this.#name = name;
    this.#config = config;
    this.#vpc = new Vpc(`${name}-vpc`, config, { parent: this });
    const nodeRole = createNodeRole(this, name);
    const cluster = createCluster(this, name, config, this.#vpc, nodeRole.role);
    const clusterName = cluster.eksCluster.name;
    this.#clusterArn = cluster.eksCluster.arn;
    this.#clusterSecurityGroupId = cluster.eksCluster.vpcConfig.clusterSecurityGroupId;
    this.#oidcProvider = pulumi
      .all([cluster.oidcProviderArn, cluster.oidcProviderUrl])
      .apply(([arn, url]) => ({ arn, url }));

    const nodes = config.nodePools.map(
      (pool) =>
        new NodeGroup(
          `${name}-${pool.name}`,
          {
            config,
            pool,
            cluster: { name: clusterName, version: cluster.eksCluster.version },
            role: nodeRole.role,
            needs: [...nodeRole.policies, ...this.#vpc.routes],
            subnetIds: this.#vpc.privateSubnetIds,
          },
          { parent: this },
        ),
    );
    this.#bucket = new EksBucket(`${name}-bucket`, config, { parent: this });
    const clientRole = this.#createClientRole(clusterName);

    const kubeconfig = pulumi.secret(cluster.kubeconfigJson);
    this.kubernetes = new kubernetes.Provider(
      `${name}-kubernetes`,
      { kubeconfig, enableServerSideApply: true },
      { parent: this },
    );
    const addons = new ClusterAddons(
      `${name}-addons`,
      {
        config,
        kubernetes: this.kubernetes,
        cluster: { name: clusterName, arn: this.#clusterArn },
        oidcProvider: this.#oidcProvider,
        nodes,
      },
      { parent: this },
    );
    // Volumes are deleted by the driver among the add-ons: it goes after the pods that have them.
    this.nodes = [...nodes, addons];
    this.access = {
      clusterName,
      configMethod: "EKS_AUTH",
      region: config.region,
      roleName: clientRole.arn,
      kubeconfig,
      kubernetesVersion: cluster.eksCluster.version,
    };
    this.bucketUri = this.#bucket.uri;
    this.storageClass = addons.storageClass;
    this.coreSelector = nodeSelector(config, "core");
    this.registerOutputs();
  }

  /** A role for exactly one service account; requirements.md 5.1, variant B, 5 and 6. */
  bucketIdentity(name: string, serviceAccount: string): pulumi.Output<Record<string, string>> {
    const { namespace } = this.#config;
    const { role } = createRole(
      `${this.#name}-${name}`,
      {
        description: `Pods of ${namespace}/${serviceAccount}`,
        trust: this.#oidcProvider.apply((provider) => trustServiceAccount(provider, namespace, serviceAccount)),
        policy: pulumi
          .all([this.#clusterArn, this.#bucket.arn])
          .apply(([clusterArn, bucketArn]) =>
            policyOf(describeCluster(clusterArn), ...useBucket(bucketArn, this.#bucket.prefix)),
          ),
      },
      this,
    );
    return role.arn.apply((arn): Record<string, string> => ({ [identityAnnotations.EKS_AUTH]: arn }));
  }

  /** A role that the catalog alone may assume, and that may do no more than the catalog itself. */
  vendingRole(identity: pulumi.Output<Record<string, string>>): pulumi.Output<string> {
    const { role } = createRole(
      `${this.#name}-tables`,
      {
        description: "The catalog hands out sessions of it, each held to one table",
        trust: identity.apply((annotations) => trustPrincipals([annotations[identityAnnotations.EKS_AUTH] ?? ""])),
        policy: this.#bucket.arn.apply((bucketArn) => policyOf(...useBucket(bucketArn, this.#bucket.prefix))),
      },
      this,
    );
    return role.arn;
  }

  imageRepository(): ImageRepository {
    const repository = new aws.ecr.Repository(
      `${this.#name}-images`,
      {
        name: `${this.#config.clusterName}/tiltyard-catalog`,
        // Pods name the image by its digest. Built anew from the same sources, elsewhere, it has another one.
        imageTagMutability: "MUTABLE",
        imageScanningConfiguration: { scanOnPush: true },
        encryptionConfigurations: [{ encryptionType: "AES256" }],
        forceDelete: !this.#config.deletionProtection,
      },
      { parent: this },
    );
    const token = aws.ecr.getAuthorizationTokenOutput({ registryId: repository.registryId }, { parent: this });
    return {
      name: repository.repositoryUrl,
      registry: { address: token.proxyEndpoint, username: token.userName, password: pulumi.secret(token.password) },
    };
  }

  database({ replicas }: { readonly replicas: number }): pulumi.Output<string> {
    return createRds(`${this.#name}-database`, this.#config, this.#vpc, {
      replicas,
      clusterSecurityGroupId: this.#clusterSecurityGroupId,
      parent: this,
    });
  }

  /** The role that programs take to make Ray clusters; requirements.md 5.1, variant B, 2 and 3. */
  #createClientRole(clusterName: pulumi.Output<string>): aws.iam.Role {
    const { role } = createRole(
      `${this.#name}-client`,
      {
        name: this.#config.clientRole,
        description: "Makes Ray clusters",
        trust: trustPrincipals(this.#config.clientPrincipals),
        policy: pulumi
          .all([this.#clusterArn, this.#bucket.arn])
          .apply(([clusterArn, bucketArn]) =>
            policyOf(accessCluster(clusterArn), ...useBucket(bucketArn, this.#bucket.prefix)),
          ),
      },
      this,
    );
    const entry = new aws.eks.AccessEntry(
      `${this.#name}-client`,
      { clusterName, principalArn: role.arn, type: "STANDARD" },
      { parent: this },
    );
    new aws.eks.AccessPolicyAssociation(
      `${this.#name}-client`,
      {
        clusterName,
        principalArn: entry.principalArn,
        policyArn: "arn:aws:eks::aws:cluster-access-policy/AmazonEKSClusterAdminPolicy",
        accessScope: { type: "cluster" },
      },
      { parent: this },
    );
    return role;
  }
}

function createNodeRole(parent: pulumi.Resource, name: string) {
  return createRole(
    `${name}-nodes`,
    {
      description: "Nodes of the cluster",
      trust: trustService("ec2.amazonaws.com"),
      managedPolicies: ["AmazonEKSWorkerNodePolicy", "AmazonEKS_CNI_Policy", "AmazonEC2ContainerRegistryPullOnly"],
    },
    parent,
  );
}

function createCluster(
  parent: pulumi.Resource,
  name: string,
  config: StackConfig,
  vpc: Vpc,
  nodeRole: aws.iam.Role,
): eks.Cluster {
  const { network } = config;
  return new eks.Cluster(
    name,
    {
      name: config.clusterName,
      version: config.kubernetesVersion ?? versions.kubernetes,
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
      instanceRole: nodeRole,
      nodeAssociatePublicIpAddress: false,
      // Prefixes give a node room for many more pods; policies keep the catalog to those who may call it.
      vpcCniOptions: { enablePrefixDelegation: true, enableNetworkPolicy: true },
      upgradePolicy: { supportType: "STANDARD" },
      deletionProtection: config.deletionProtection,
    },
    { parent },
  );
}
