import { readFileSync } from "node:fs";
import { join } from "node:path";
import { platformDefaults, rayImage } from "@tiltyard/platform";
import { expect, test } from "vitest";

const project = join(import.meta.dirname, "../..");
const read = (file: string) => readFileSync(join(project, file), "utf8");

/** Returns the packages of a file, and requires an exact version with hashes for each of them. */
function pinsOf(file: string): readonly string[] {
  const pins = read(file)
    .replaceAll(/ \\\n +--hash=sha256:[0-9a-f]{64}/g, " hashed")
    .split("\n")
    .filter((line) => /^[^#]/.test(line));
  expect(pins).not.toEqual([]);
  expect(pins.filter((line) => !/^[\w.-]+==[\w.]+( hashed)+$/.test(line))).toEqual([]);
  return pins;
}

test("pins all packages of the Ray image, and Ray to the version that the client requests", () => {
  const { rayVersion } = platformDefaults;
  const dockerfile = read("Dockerfile.ray");
  const argument = (name: string) => new RegExp(`^ARG ${name}=(.*)$`, "m").exec(dockerfile)?.[1];
  expect(rayImage(rayVersion)).toBe(`rayproject/ray:${argument("RAY_VERSION")}-${argument("PYTHON")}`);
  const suffix = /^FROM rayproject\/ray:\S+?(-aarch64)? AS for-arm64$/m.exec(dockerfile)?.[1];
  expect(rayImage(rayVersion, "arm64")).toBe(`${rayImage(rayVersion)}${suffix}`);
  const requirements = pinsOf("runner/job/requirements.txt");
  expect(requirements.some((line) => line.startsWith(`ray==${rayVersion} `))).toBe(true);
  // The licence of Geneva does not allow its redistribution.
  expect(requirements.filter((line) => line.startsWith("geneva"))).toEqual([]);
});

test("builds the package of jobs with pinned packages alone, and leaves them out of the image", () => {
  const pins = pinsOf("runner/job/build-requirements.txt").map((line) => line.split(" ")[0]);
  const required = /^requires = \[(.*)\]$/m.exec(read("runner/job/pyproject.toml"))?.[1] ?? "";
  expect(pins).toContain(JSON.parse(required));
  const dockerfile = read("Dockerfile.ray").replaceAll(" \\\n", " ");
  const builds = dockerfile
    .split(/\n| && /)
    .filter((line) => /pip (wheel|install) .*\/home\/ray\/job(\s|$)/.test(line));
  expect(builds).toEqual([expect.stringMatching(/pip wheel .*--no-deps --no-build-isolation /)]);
  const [, , , , image = ""] = dockerfile.split(/^FROM /m);
  expect(image).toContain("pip install --no-cache-dir --no-deps /home/ray/job/*.whl");
  expect(image).not.toContain("build-requirements.txt");
});
