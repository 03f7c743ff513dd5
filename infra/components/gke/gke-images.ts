import * as gcp from "@pulumi/gcp";
import * as pulumi from "@pulumi/pulumi";
import type { ImageRepository } from "../../cluster.ts";
import type { GkeConfig } from "../../config.ts";
import type { AccountContext } from "./gke-accounts.ts";

const keptVersions = 10;
const oldDays = 30;

export interface GkeImagesArgs extends AccountContext {
  readonly config: Pick<GkeConfig, "region" | "project" | "clusterName">;
  /** Nodes that are let in to it; those of the stack may read all registries of the project. */
  readonly nodeEmails?: readonly string[];
}

/** A registry for the images that the stack builds. */
export function createGkeImages(
  name: string,
  { config, parent, project, nodeEmails = [] }: GkeImagesArgs,
): ImageRepository {
  const { region, project: projectId, clusterName } = config;
  const repository = new gcp.artifactregistry.Repository(
    name,
    {
      project,
      format: "DOCKER",
      location: region,
      repositoryId: `${clusterName}-images`,
      // What is kept is only kept from being deleted: there has to be a rule that deletes.
      cleanupPolicies: [
        { id: "keep-newest", action: "KEEP", mostRecentVersions: { keepCount: keptVersions } },
        { id: "delete-old", action: "DELETE", condition: { olderThan: `${oldDays * 24 * 60 * 60}s` } },
      ],
      cleanupPolicyDryRun: false,
    },
    { parent },
  );
  for (const [index, email] of nodeEmails.entries())
    new gcp.artifactregistry.RepositoryIamMember(
      `${name}-pull-${index}`,
      {
        project,
        location: region,
        repository: repository.name,
        role: "roles/artifactregistry.reader",
        member: `serviceAccount:${email}`,
      },
      { parent },
    );
  const address = `${region}-docker.pkg.dev`;
  const token = gcp.organizations.getClientConfigOutput({ parent }).accessToken;
  return {
    name: pulumi.interpolate`${address}/${projectId}/${repository.repositoryId}/tiltyard-catalog`,
    registry: { address, username: "oauth2accesstoken", password: pulumi.secret(token) },
  };
}
