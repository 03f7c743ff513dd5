import * as pulumi from "@pulumi/pulumi";
import type { BucketAccess, ClusterSubject } from "../../cluster.ts";
import type { Team } from "../../settings/team-settings.ts";
import { createRayNamespace, type RayNamespaceArgs, type RayNamespaceSettings } from "./ray-namespace.ts";
import { createRoleInNamespace } from "./ray-rights.ts";

export interface RayTeamArgs extends RayNamespaceSettings, Pick<RayNamespaceArgs, "peers"> {
  readonly bucketAccess: BucketAccess;
  readonly team: Team;
}

/**
 * A team: a namespace for its Ray clusters, an account of their pods that may use only the team's folder of the bucket,
 * and principals that may create such clusters but have no rights on those of other teams.
 */
export class RayTeam extends pulumi.ComponentResource {
  readonly name: string;
  readonly namespace: string;
  readonly clients: readonly ClusterSubject[];
  /** The role that its clients assume; undefined if the cloud has no such role. */
  readonly roleName: pulumi.Output<string> | undefined;
  readonly bucketUri: pulumi.Output<string>;
  /** The resource that must exist before objects are created in its namespace. */
  readonly ready: pulumi.Resource;

  constructor(name: string, args: RayTeamArgs, options?: pulumi.ComponentResourceOptions) {
    super("tiltyard:infra:RayTeam", name, {}, options);
    const { cluster, team, serviceAccount, bucketAccess } = args;
    const { namespace, quota } = team;
    const folder = `${team.name}/`;
    const { clients, roleName } = cluster.createTeamClient(team.name, { principals: team.clientPrincipals, folder });
    const identity = cluster.services.createIdentity(`ray-${team.name}`, {
      ...{ namespace, name: serviceAccount, folder, bucketAccess },
      ...(team.serviceAccountAnnotations !== undefined && { annotations: team.serviceAccountAnnotations }),
    });
    this.name = team.name;
    this.namespace = namespace;
    this.clients = clients;
    this.roleName = roleName;
    this.bucketUri = pulumi.interpolate`${cluster.services.bucketUri}/${team.name}`;
    // A privileged pod could read the secrets of all pods of its node.
    const enforce = "baseline";
    this.ready = createRayNamespace(name, { ...args, namespace, enforce, identity, clients, quota }, this);
    const inNamespace = { parent: this, provider: cluster.kubernetes, dependsOn: [this.ready] };
    createRoleInNamespace(name, { namespace, serviceAccount }, inNamespace);
    this.registerOutputs();
  }
}
