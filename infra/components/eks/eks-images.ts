import * as aws from "@pulumi/aws";
import * as pulumi from "@pulumi/pulumi";
import * as random from "@pulumi/random";
import type { ImageRepository } from "../../cluster.ts";
import type { EksConfig } from "../../config.ts";
import { resourcePrefix } from "./resource-prefix.ts";

const keptVersions = 10;

/**
 * Creates a repository for an image that the stack builds. Its name has a suffix, because the stacks of one existing cluster
 * each have their own.
 */
export function createEksImages(
  name: string,
  image: string,
  config: Pick<EksConfig, "clusterName" | "deletionProtection" | "registrySignIn">,
  parent: pulumi.Resource,
): ImageRepository {
  const suffix = new random.RandomId(name, { byteLength: 4 }, { parent });
  const repository = new aws.ecr.Repository(
    name,
    {
      name: pulumi.interpolate`${resourcePrefix(config)}/${image}-${suffix.hex}`,
      imageTagMutability: "IMMUTABLE",
      imageScanningConfiguration: { scanOnPush: true },
      encryptionConfigurations: [{ encryptionType: "AES256" }],
      forceDelete: !config.deletionProtection,
    },
    { parent },
  );
  new aws.ecr.LifecyclePolicy(
    name,
    {
      repository: repository.name,
      policy: JSON.stringify({
        rules: [
          {
            rulePriority: 1,
            description: "The newest versions are kept",
            selection: { tagStatus: "any", countType: "imageCountMoreThan", countNumber: keptVersions },
            action: { type: "expire" },
          },
        ],
      }),
    },
    { parent },
  );
  if (config.registrySignIn === "docker") return { name: repository.repositoryUrl, registry: undefined };
  const token = aws.ecr.getAuthorizationTokenOutput({ registryId: repository.registryId }, { parent });
  return {
    name: repository.repositoryUrl,
    registry: { address: token.proxyEndpoint, username: token.userName, password: pulumi.secret(token.password) },
  };
}
