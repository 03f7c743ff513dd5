import * as gcp from "@pulumi/gcp";
import * as pulumi from "@pulumi/pulumi";
import * as random from "@pulumi/random";
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
const cleanUp = {
  cleanupPolicies: [
    { id: "keep-newest", action: "KEEP", mostRecentVersions: { keepCount: keptVersions } },
    { id: "delete-old", action: "DELETE", condition: { olderThan: `${oldDays * 24 * 60 * 60}s` } },
  ],
  cleanupPolicyDryRun: false,
};

/** Creates a registry for the images that the stack builds. @returns A function that returns the repository of an image. */
export function createGkeImages(name: string, args: GkeImagesArgs): (image: string) => ImageRepository {
  const { config, parent } = args;
  const { region, project } = config;
  const repository = createRepository(name, "images", args);
  const address = `${region}-docker.pkg.dev`;
  const registry = config.registrySignIn === "docker" ? undefined : signIn(address, parent);
  return (image) => ({
    name: pulumi.interpolate`${address}/${project}/${repository.repositoryId}/${image}`,
    registry,
  });
}

/** Returns the credentials of the push, with a token of Google that lives for an hour. */
function signIn(address: string, parent: pulumi.Resource) {
  const { accessToken } = gcp.organizations.getClientConfigOutput({ parent });
  return { address, username: "oauth2accesstoken", password: pulumi.secret(accessToken) };
}

/**
 * Creates a repository, and allows nodes to pull from it that have no right to the registries of the project. The id has a
 * suffix, because the stacks of one existing cluster each have their own.
 */
export function createRepository(
  name: string,
  content: string,
  { config, project, nodeEmails = [], parent }: GkeImagesArgs,
  more: Partial<gcp.artifactregistry.RepositoryArgs> = {},
): gcp.artifactregistry.Repository {
  const { region, clusterName } = config;
  const suffix = new random.RandomId(name, { byteLength: 4 }, { parent });
  const repository = new gcp.artifactregistry.Repository(
    name,
    {
      project,
      format: "DOCKER",
      location: region,
      repositoryId: pulumi.interpolate`${clusterName}-${content}-${suffix.hex}`,
      ...cleanUp,
      ...more,
    },
    { parent },
  );
  for (const email of nodeEmails)
    new gcp.artifactregistry.RepositoryIamMember(
      `${name}-pull-${email}`,
      {
        project,
        location: region,
        repository: repository.name,
        role: "roles/artifactregistry.reader",
        member: `serviceAccount:${email}`,
      },
      { parent },
    );
  return repository;
}
