/** Every program that others wrote and that the project downloads has an exact version. npm's are in the lockfile. */
import { globSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { parse, stringify } from "yaml";
import { versions } from "../infra/versions.ts";

const exclude = (name: string) => name === "node_modules";
const dockerfiles = globSync("Dockerfile*").filter((name) => !name.endsWith(".dockerignore"));
const workflows = globSync([".github/workflows/*.{yml,yaml}", "**/action.{yml,yaml}"], { exclude });
const requirements = globSync(["runner/**/*.txt", "test/**/{requirements,constraints}.txt"], { exclude });
const pyprojects = globSync("**/pyproject.toml", { exclude });

const byDigest = /@sha256:[0-9a-f]{64}$/;
/** A commit, the digest of an image, or a file of the same commit. */
const exactAction = /^(\.\/\S+|[^:]+@[0-9a-f]{40}|docker:\/\/\S+@sha256:[0-9a-f]{64})$/;
const exactPackage = /^[\w.-]+(\[[\w,-]+\])?==[\w.]+( \\)?$/;
const rayImage = /^rayproject\/ray:\$\{RAY_VERSION\}-\$\{PYTHON\}\$\{VARIANT\}(-aarch64)?$/;
/** The stages of Dockerfile.ray for each kind of processor. */
const stageOfProcessor = /^for-\$\{TARGETARCH\}$/;

type Yaml = Readonly<Record<string, unknown>>;

/** Returns the actions and the images of a workflow or a composite action. */
function downloadsOf(text: string): { readonly actions: string[]; readonly images: string[] } {
  const actions: string[] = [];
  const images: string[] = [];
  const isMap = (value: unknown): value is Yaml => typeof value === "object" && value !== null && !Array.isArray(value);
  const imageOf = (value: unknown) => (isMap(value) ? value.image : value);
  function visit(value: unknown): void {
    if (Array.isArray(value)) for (const each of value) visit(each);
    if (!isMap(value)) return;
    for (const [key, each] of Object.entries(value)) {
      if (key === "uses") actions.push(String(each));
      else if (key === "container") images.push(String(imageOf(each)));
      else if (key === "services" && isMap(each)) images.push(...Object.values(each).map(imageOf).map(String));
      else visit(each);
    }
    // An action that is an image.
    if (value.using === "docker") images.push(String(value.image).replace("docker://", ""));
  }
  visit(parse(text));
  return { actions, images };
}

/** Returns the images that a Dockerfile downloads, and those that it copies or mounts from. Its own stages are not among them. */
function imagesOf(dockerfile: string): readonly string[] {
  const text = dockerfile.replaceAll(/\\\n/g, " ");
  const stages = [...text.matchAll(/^FROM .* AS (\S+)$/gim)].map(([, name = ""]) => name);
  const names = text.matchAll(/^FROM (?:--\S+ )*(\S+)|^(?:COPY|ADD) .*?--from=(\S+)|--mount=\S*?\bfrom=([^,\s]+)/gim);
  const found = [...names].map(([, ...each]) => each.find((name) => name !== undefined) ?? "");
  return found.filter((name) => !stages.includes(name) && !stageOfProcessor.test(name));
}

const looseIn = (names: readonly string[], exact: RegExp) => names.filter((name) => !exact.test(name));

function read(files: readonly string[], pattern: RegExp): string[] {
  const found = files.flatMap((file) => [...readFileSync(file, "utf8").matchAll(pattern)].map(([, name = ""]) => name));
  expect(found).not.toEqual([]);
  return found;
}

test("pins all actions and images of the workflows by commits and digests", () => {
  const downloads = workflows.map((file) => downloadsOf(readFileSync(file, "utf8")));
  const actions = downloads.flatMap((each) => each.actions);
  expect(actions.length).toBeGreaterThan(10);
  expect(looseIn(actions, exactAction)).toEqual([]);
  const images = downloads.flatMap((each) => each.images);
  expect(looseIn(images, byDigest)).toEqual([]);
});

test("pins all packages of PyPI by versions", () => {
  expect(looseIn(read(requirements, /^([^#\s].*)$/gm), exactPackage)).toEqual([]);
});

test("pins the packages that build packages of Python", () => {
  const required = read(pyprojects, /^\[build-system\]$[^[]*^requires = \[([^\]]*)\]$/gm);
  expect(required.length).toBe(pyprojects.length);
  const packages = required.flatMap((list) => JSON.parse(`[${list}]`) as string[]);
  expect(looseIn(packages, exactPackage)).toEqual([]);
});

test("pins the images of Dockerfiles by digests, and Ray's by its version", () => {
  const images = dockerfiles.flatMap((file) => imagesOf(readFileSync(file, "utf8")));
  expect(images.length).toBeGreaterThan(3);
  expect(images.filter((image) => !byDigest.test(image) && !rayImage.test(image))).toEqual([]);
  expect(readFileSync("Dockerfile.ray", "utf8")).toMatch(/^ARG RAY_VERSION=\d+\.\d+\.\d+$/m);
});

test("finds all that workflows, composite actions and Dockerfiles download", () => {
  const workflow = {
    jobs: {
      one: {
        container: "node:24",
        services: { db: { image: "postgres:18" }, cache: "redis" },
        steps: [{ uses: "a/b@v1" }],
      },
      two: { container: { image: "ruby:4" }, uses: "a/b/.github/workflows/c.yml@main" },
    },
  };
  expect(downloadsOf(stringify(workflow))).toEqual({
    actions: ["a/b@v1", "a/b/.github/workflows/c.yml@main"],
    images: ["node:24", "postgres:18", "redis", "ruby:4"],
  });
  const composite = { runs: { using: "composite", steps: [{ uses: "docker://alpine:3" }] } };
  expect(looseIn(downloadsOf(stringify(composite)).actions, exactAction)).toEqual(["docker://alpine:3"]);
  const ofDocker = { runs: { using: "docker", image: "docker://alpine:3" } };
  expect(downloadsOf(stringify(ofDocker)).images).toEqual(["alpine:3"]);
  const dockerfile = [
    "FROM --platform=linux/amd64 node:24 AS built",
    "FROM built",
    "COPY --from=built /a /",
    "COPY --chown=me --from=busybox:1 /b /",
    "RUN --mount=type=bind,from=golang:2,target=/c \\",
    "  --mount=type=bind,from=built,target=/d true",
  ];
  expect(imagesOf(dockerfile.join("\n"))).toEqual(["node:24", "busybox:1", "golang:2"]);
});

test("the pod of the runbook restores by the Litestream of a stack", () => {
  const images = read(["examples/restore-pod.yaml"], /image: (?:&\w+ )?(litestream\/\S+)/g);
  expect(images).toEqual([`litestream/litestream:${versions.litestream}`]);
});
