import { describe, expect, test } from "vitest";
import { mayCall } from "../support/iam.ts";
import { refusals } from "../support/refusals.ts";
import { deployed, type Settings } from "../support/stack.ts";

const dockerHubCredentials =
  "arn:aws:secretsmanager:eu-central-1:123456789012:secret:ecr-pullthroughcache/docker-hub-a1b2c3";
const settings: Readonly<Record<string, Settings>> = {
  eks: { imageCache: { dockerHubCredentials } },
  "existing-eks": { imageCache: { dockerHubCredentials } },
  gke: { imageCache: true },
  "existing-gke": { imageCache: true },
};
const aws = "123456789012.dkr.ecr.eu-central-1.amazonaws.com/lancedb";
const google = "europe-west4-docker.pkg.dev/our-project/lancedb";
const release = "kubernetes:helm.sh/v3:Release";

describe.each([
  ["eks", `${aws}/hub`, `${aws}/quay`],
  ["existing-eks", `${aws}/hub`, `${aws}/quay`],
  ["gke", `${google}-docker-hub-0a1b2c3d`, `${google}-quay-0a1b2c3d`],
  ["existing-gke", `${google}-docker-hub-0a1b2c3d`, `${google}-quay-0a1b2c3d`],
])("images on %s", (variant, hub, quay) => {
  const ray = { build: false };
  const withCache = deployed(variant, { ...settings[variant], rayLogs: true, ray, catalog: { litestream: true } });

  test("are pulled from the cloud's registry, which copies other registries", async () => {
    const { one, outputs, resources } = await withCache;
    expect(outputs).toMatchObject({
      rayImage: `${hub}/rayproject/ray:2.60.0-py312`,
      rayGpuImage: `${hub}/rayproject/ray:2.60.0-py312-gpu`,
      rayLogs: { image: expect.stringContaining(`${hub}/fluent/fluent-bit:`) },
    });
    expect(one(release, "operator").inputs.values.image).toEqual({ repository: `${quay}/kuberay/operator` });
    const { initContainers } = one("kubernetes:apps/v1:StatefulSet").inputs.spec.template.spec;
    expect(initContainers[0].image).toContain(`${hub}/litestream/litestream:`);
    expect(refusals(resources)).toEqual([]);
  });

  test("stay unchanged when their registry is not copied or the setting is missing", async () => {
    const own = { catalog: { image: "ghcr.io/us/catalog:1" }, ray: { image: "registry.example.com:5000/ray:1" } };
    const { one, outputs } = await deployed(variant, { ...settings[variant], ...own });
    expect(outputs.rayImage).toBe("registry.example.com:5000/ray:1");
    const { containers } = one("kubernetes:apps/v1:StatefulSet").inputs.spec.template.spec;
    expect(containers[0].image).toBe("ghcr.io/us/catalog:1");
    const plain = await deployed(variant, { ray });
    expect(plain.outputs.rayImage).toBe("rayproject/ray:2.60.0-py312");
    expect(plain.one(release, "operator").inputs.values.image).toEqual({ repository: "quay.io/kuberay/operator" });
  });
});

describe("the copies", () => {
  test("are created on AWS by the first pull of a node, which has the permission", async () => {
    const stack = await deployed("eks", settings.eks);
    const rules = stack.all("aws:ecr/pullThroughCacheRule:PullThroughCacheRule").map(({ inputs }) => inputs);
    expect(rules).toHaveLength(3);
    expect(rules).toEqual(
      expect.arrayContaining([
        {
          ecrRepositoryPrefix: "lancedb/hub",
          upstreamRegistryUrl: "registry-1.docker.io",
          credentialArn: dockerHubCredentials,
        },
        { ecrRepositoryPrefix: "lancedb/quay", upstreamRegistryUrl: "quay.io" },
        { ecrRepositoryPrefix: "lancedb/k8s", upstreamRegistryUrl: "registry.k8s.io" },
      ]),
    );
    const make = (repository: string) => ({
      action: "ecr:CreateRepository",
      resource: `arn:aws:ecr:eu-central-1:123456789012:repository/${repository}`,
    });
    expect(mayCall(stack, "eks-nodes", make("lancedb/hub/rayproject/ray"))).toBe(true);
    expect(mayCall(stack, "eks-nodes", make("lancedb/tiltyard-catalog"))).toBe(false);
    expect(mayCall(stack, "eks-nodes", make("others/hub/rayproject/ray"))).toBe(false);
    expect(mayCall(await deployed("eks"), "eks-nodes", make("lancedb/hub/rayproject/ray"))).toBe(false);
    const { values } = stack.one(release, "autoscaler").inputs;
    expect(values.image.repository).toBe(`${aws}/k8s/autoscaling/cluster-autoscaler`);
  });

  test("are remote repositories on Google Cloud, which the nodes of an existing cluster may read", async () => {
    const { all } = await deployed("existing-gke", settings["existing-gke"]);
    const repositories = all("gcp:artifactregistry/repository:Repository").map(({ inputs }) => inputs);
    const remote = repositories.filter(({ mode }) => mode === "REMOTE_REPOSITORY");
    expect(remote.map(({ remoteRepositoryConfig }) => remoteRepositoryConfig.dockerRepository)).toEqual([
      { publicRepository: "DOCKER_HUB" },
      { customRepository: { uri: "https://quay.io" } },
      { customRepository: { uri: "https://registry.k8s.io" } },
    ]);
    const readers = all("gcp:artifactregistry/repositoryIamMember:RepositoryIamMember");
    expect(readers.filter(({ name }) => name.includes("cache-docker-hub")).map(({ inputs }) => inputs.role)).toEqual([
      "roles/artifactregistry.reader",
      "roles/artifactregistry.reader",
    ]);
  });

  test.each([
    ["eks", { imageCache: true }, "imageCache: must be {dockerHubCredentials: ARN}"],
    [
      "eks",
      { imageCache: { dockerHubCredentials: dockerHubCredentials.replace("ecr-pullthroughcache/", "") } },
      "imageCache.dockerHubCredentials: must be the ARN of a secret whose name begins with ecr-pullthroughcache/",
    ],
    [
      "eks",
      { ...settings.eks, clusterName: "a".repeat(26) },
      "imageCache: needs a clusterName of at most 25 characters",
    ],
    ["existing", { imageCache: true }, "imageCache: is not a setting on existing, but on existing-gke, existing-eks"],
  ])("are refused where they cannot be: %s %j", async (variant, given, message) => {
    await expect(deployed(variant, given)).rejects.toThrow(message);
  });
});
