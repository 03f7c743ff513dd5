import * as gcp from "@pulumi/gcp";
import * as pulumi from "@pulumi/pulumi";
import type { ImageRepository } from "../../cluster.ts";
import type { GkeConfig } from "../../config.ts";
import type { AccountDeps } from "./gke-accounts.ts";

const keptVersions = 10;
const oldDays = 30;

export interface GkeImagesArgs extends AccountDeps {
  readonly config: Pick<GkeConfig, "region" | "project" | "clusterName"> & Partial<Pick<GkeConfig, "registrySignIn">>;
  /** The accounts of nodes that may pull from it; those of the stack may read all registries of the project. */
  readonly nodeEmails?: readonly string[];
}

/** The cleanup rules. A KEEP rule alone deletes nothing: it only exempts images from a DELETE rule. */
export const cleanUp = {
  cleanupPolicies: [
    { id: "keep-newest", action: "KEEP", mostRecentVersions: { keepCount: keptVersions } },
    { id: "delete-old", action: "DELETE", condition: { olderThan: `${oldDays * 24 * 60 * 60}s` } },
  ],
  cleanupPolicyDryRun: false,
};

/** Creates a registry for the images that the stack builds. @returns A function that returns the repository of an image. */
export function createGkeImages(name: string, args: GkeImagesArgs): (image: string) => ImageRepository {
  const { config, parent, project } = args;
  const { region, project: projectId, clusterName } = config;
  const repository = new gcp.artifactregistry.Repository(
    name,
    {
      project,
      format: "DOCKER",
      location: region,
      repositoryId: `${clusterName}-images`,
      ...cleanUp,
    },
    { parent },
  );
  grantNodesPull(name, repository, args);
  const address = `${region}-docker.pkg.dev`;
  const registry = config.registrySignIn === "docker" ? undefined : signIn(address, parent);
  return (image) => ({
    name: pulumi.interpolate`${address}/${projectId}/${repository.repositoryId}/${image}`,
    registry,
  });
}

/** Returns the credentials of the push, with a token of Google that lives for an hour. */
function signIn(address: string, parent: pulumi.Resource) {
  const { accessToken } = gcp.organizations.getClientConfigOutput({ parent });
  return { address, username: "oauth2accesstoken", password: pulumi.secret(accessToken) };
}

/** Allows nodes to pull that have no right to the registries of the project. */
export function grantNodesPull(
  name: string,
  repository: gcp.artifactregistry.Repository,
  { config, project, nodeEmails = [], parent }: GkeImagesArgs,
): void {
  for (const email of nodeEmails)
    new gcp.artifactregistry.RepositoryIamMember(
      `${name}-pull-${email}`,
      {
        project,
        location: config.region,
        repository: repository.name,
        role: "roles/artifactregistry.reader",
        member: `serviceAccount:${email}`,
      },
      { parent },
    );
}
