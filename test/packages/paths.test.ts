import { readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, inject, test } from "vitest";
import { readPath } from "./page.ts";
import { type Followed, follow, runScript, strangersEnvironment } from "./stranger.ts";

const packages = inject("packages");

/** A program that prints the build context of the catalog's image. */
const buildsAnImage = `
import * as pulumi from "@pulumi/pulumi";
import { Catalog, ExistingCluster, OwnServices, RayPlatform } from "@tiltyard/infra";

class OwnRegistry extends OwnServices {
  createImageRepository(name) {
    const registry = { address: "registry.example.com", username: "u", password: pulumi.output("p") };
    return { name: pulumi.output("registry.example.com/" + name), registry };
  }
}
const newResource = ({ type, name, inputs }) => {
  if (type === "docker-build:index:Image") console.log(JSON.stringify(inputs));
  return { id: name, state: { ...inputs, ref: "image@sha256:0" } };
};
await pulumi.runtime.setMocks({ newResource, call: ({ inputs }) => inputs }, "yard", "dev", true, "organization");
// Pulumi's mocks accept no resource hooks.
pulumi.runtime.getMonitor().registerResourceHook = (_, answered) => answered(null, {});
const services = () => new OwnRegistry({ bucket: "s3://tables/lance" });
const cluster = new ExistingCluster("yard", { clusterName: "yard", services });
const platform = new RayPlatform("ray", { cluster, namespace: "features" });
new Catalog("catalog", { cluster, platform });
await pulumi.runtime.disconnect();
`;

function expectDone({ code, stdout, stderr }: Followed): void {
  expect(code, `stderr: ${stderr}\nstdout: ${stdout}`).toBe(0);
}

describe.concurrent("from packages alone", () => {
  test("an ML engineer runs a job that finds the catalog, and the catalog's jobs", async () => {
    const done = await follow(readPath("ML engineer"), packages, 24);
    expectDone(done);
    expect(done.stdout).toContain("films has 1000 rows in 4 fragments");
    expect(done.stdout.trimEnd()).toMatch(/\n1000$/);
    // The compiled code is cached for the next start.
    expect(readdirSync(join(done.folder, "node_modules/@tiltyard/.cache/compiled"))).not.toEqual([]);
  });

  test("a platform engineer previews a program that puts Ray and the catalog on a cluster", async () => {
    const done = await follow(readPath("Platform engineer"), packages, 22);
    expectDone(done);
    for (const line of [
      "tiltyard:infra:RayPlatform ray",
      "tiltyard:infra:Catalog catalog",
      "tiltyard:infra:Runner runner",
      "kubernetes:helm.sh/v3:Release ray-operator",
      "kubernetes:apps/v1:Deployment catalog",
      "http://tiltyard-catalog.features-catalog.svc:2333",
    ])
      expect(done.stdout.split("\n")).toContain(line);

    // On a cluster with a registry, the catalog's image is built from the sources in the package.
    writeFileSync(join(done.folder, "build.js"), buildsAnImage);
    const built = await runScript("node build.js", done.folder, strangersEnvironment(22));
    expectDone(built);
    const { context, dockerfile, tags } = JSON.parse(built.stdout);
    expect(context.location).toBe("node_modules/@tiltyard/infra/images");
    expect(dockerfile.location).toBe("node_modules/@tiltyard/infra/images/Dockerfile");
    // A preview does not know the end of the tag.
    expect(tags).toHaveLength(1);
  });

  test("a developer calls the catalog from a program in strict TypeScript", async () => {
    const done = await follow(readPath("Developer"), packages, 22);
    expectDone(done);
    expect(done.stdout).toMatch(/\[ 'posters' \] file:\/\/\/.*posters/);
    expect(done.stdout).toContain("409 DropNamespace: namespace films is not empty");
    // The client of the catalog alone and its types need no package of Kubernetes or of a cloud.
    const others =
      "node_modules/@kubernetes node_modules/@aws-sdk node_modules/@smithy node_modules/google-auth-library";
    const alone = `rm -rf ${others} provision.ts && npx tsc && node -e 'import("@tiltyard/client/catalog")'`;
    expectDone(await runScript(alone, done.folder, strangersEnvironment(22)));
  });
});
