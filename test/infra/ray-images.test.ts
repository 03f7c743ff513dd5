import { describe, expect, test } from "vitest";
import { deployed, type Settings } from "../support/stack.ts";

const imageType = "docker-build:index:Image";
const registries = {
  gke: "europe-west4-docker.pkg.dev/our-project/lancedb-images-0a1b2c3d",
  eks: "123456789012.dkr.ecr.eu-central-1.amazonaws.com/lancedb",
  "existing-eks": "123456789012.dkr.ecr.eu-central-1.amazonaws.com/lancedb",
};

describe("the images of Ray", () => {
  test.each(Object.entries(registries))(
    "are built with the packages of jobs on %s, and run by their digests",
    async (variant, registry) => {
      const packages = ["geneva==0.17.0"];
      const { one, outputs } = await deployed(variant, { ray: { packages, version: "2.55.0" } });
      for (const [name, image, buildVariant, output] of [
        ["ray-image", "tiltyard-ray", "", outputs.rayImage],
        ["ray-gpu-image", "tiltyard-ray-gpu", "-gpu", outputs.rayGpuImage],
      ] as const) {
        const { inputs } = one(imageType, name);
        expect(inputs).toMatchObject({ push: true, buildOnPreview: false, platforms: ["linux/amd64"] });
        expect(inputs.dockerfile.location).toMatch(/Dockerfile\.ray$/);
        expect(inputs.buildArgs).toEqual({
          RAY_VERSION: "2.55.0",
          VARIANT: buildVariant,
          EXTRA_PACKAGES: "geneva==0.17.0",
        });
        expect(inputs.tags).toEqual([
          expect.stringMatching(new RegExp(`^${registry}/${image}(-0a1b2c3d)?:[0-9a-f]{16}-0a1b2c3d$`)),
        ]);
        expect(output).toBe(`${inputs.tags[0]}@sha256:0123`);
      }
      const templates = one("kubernetes:core/v1:ConfigMap", "runner").inputs.data["runner.yaml"];
      expect(templates).toContain(`"image": "${outputs.rayImage}"`);
      expect(templates).toContain(`"gpu_image": "${outputs.rayGpuImage}"`);
    },
  );

  test("have another tag with other packages, so that they are built anew", async () => {
    const tagWith = async (packages: readonly string[]) =>
      (await deployed("eks", { ray: { packages } })).one(imageType, "ray-image").inputs.tags[0];
    expect(await tagWith(["geneva==0.17.0"])).not.toBe(await tagWith([]));
  });

  test.each([
    ["when they are named", "gke", { ray: { image: "example.com/ray:1" } }, "example.com/ray:1"],
    ["when no jobs run", "eks", { runner: { enabled: false } }, "rayproject/ray:2.60.0-py312"],
    ["when they are not to be", "eks", { ray: { build: false } }, "rayproject/ray:2.60.0-py312"],
    ["where the stack has no registry", "existing", {}, "rayproject/ray:2.60.0-py312"],
  ] as const)("are not built %s", async (_, variant, settings, image) => {
    const { all, outputs } = await deployed(variant, settings);
    expect(all(imageType).map(({ name }) => name)).not.toContain("ray-image");
    expect(outputs.rayImage).toBe(image);
  });

  test("are built for GPUs only where the stack has nodes with GPUs", async () => {
    const nodePools = ["core", "head", "workerCpu"].map((role) => {
      const name = role.toLowerCase();
      return { name, role, machineType: "m7i.xlarge", min: 1 };
    });
    const { all, outputs } = await deployed("eks", { nodePools });
    expect(all(imageType).map(({ name }) => name)).toEqual(expect.arrayContaining(["ray-image"]));
    expect(all(imageType).map(({ name }) => name)).not.toContain("ray-gpu-image");
    expect(outputs.rayGpuImage).toBe("rayproject/ray:2.60.0-py312-gpu");
  });

  test("start from the digests of the settings, and are rebuilt when these change", async () => {
    const digest = `sha256:${"a".repeat(64)}`;
    const imageDigests = { "rayproject/ray:2.60.0-py312": digest };
    const [plain, pinned] = [await deployed("eks"), await deployed("eks", { imageDigests })];
    const named = (name: string) => pinned.one(imageType, name).inputs.context.named;
    expect(named("ray-image")).toEqual({
      "rayproject/ray:2.60.0-py312": { location: `docker-image://rayproject/ray@${digest}` },
    });
    expect(named("ray-gpu-image")).toEqual({});
    const tags = ({ one }: typeof plain, name: string) => one(imageType, name).inputs.tags[0];
    expect(tags(pinned, "ray-image")).not.toBe(tags(plain, "ray-image"));
    expect(tags(pinned, "ray-gpu-image")).toBe(tags(plain, "ray-gpu-image"));
    await expect(deployed("eks", { imageDigests: { "node:24": digest } })).rejects.toThrow(
      "imageDigests.node:24: must be an image of Ray: rayproject/ray:2.60.0-py312",
    );
  });

  test("have tags that no later build overwrites", async () => {
    const { all, one } = await deployed("eks");
    const repositories = all("aws:ecr/repository:Repository");
    expect(repositories).toHaveLength(3);
    for (const { inputs } of repositories) expect(inputs.imageTagMutability).toBe("IMMUTABLE");
    const { inputs } = one("random:index/randomId:RandomId", "ray-image");
    expect(one(imageType, "ray-image").inputs.tags[0]).toContain(`:${inputs.keepers.content}-0a1b2c3d`);
  });

  test.each(["gke", "eks", "existing-gke", "existing-eks"])(
    "are pushed on %s with a token of the stack, or as Docker itself signs in",
    async (variant) => {
      const registries = async (settings: Settings) =>
        (await deployed(variant, settings)).all(imageType).map(({ inputs }) => inputs.registries);
      for (const each of await registries({})) expect(each).toHaveLength(1);
      expect(await registries({ registrySignIn: "docker" })).toEqual([undefined, undefined, undefined]);
    },
  );

  test("have packages of a version each", async () => {
    await expect(deployed("eks", { ray: { packages: ["geneva"] } })).rejects.toThrow(
      "ray.packages.0: must be a package with its version, such as geneva==0.17.0",
    );
  });
});
