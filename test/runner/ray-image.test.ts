import { readFileSync } from "node:fs";
import { join } from "node:path";
import { platformDefaults, rayImage } from "@tiltyard/protocol";
import { expect, test } from "vitest";

const project = join(import.meta.dirname, "../..");
const read = (file: string) => readFileSync(join(project, file), "utf8");

test("pins all packages of the Ray image, and Ray to the version that the client requests", () => {
  const { rayVersion } = platformDefaults;
  const dockerfile = read("Dockerfile.ray");
  const argument = (name: string) => new RegExp(`^ARG ${name}=(.*)$`, "m").exec(dockerfile)?.[1];
  expect(rayImage(rayVersion)).toBe(`rayproject/ray:${argument("RAY_VERSION")}-${argument("PYTHON")}`);
  const suffix = /^FROM rayproject\/ray:\S+?(-aarch64)? AS for-arm64$/m.exec(dockerfile)?.[1];
  expect(rayImage(rayVersion, "arm64")).toBe(`${rayImage(rayVersion)}${suffix}`);
  const requirements = read("runner/job/requirements.txt")
    .replaceAll(/ \\\n +--hash=sha256:[0-9a-f]{64}/g, " hashed")
    .split("\n")
    .filter((line) => /^[^#]/.test(line));
  expect(requirements.filter((line) => !/^[\w.-]+==[\w.]+( hashed)+$/.test(line))).toEqual([]);
  expect(requirements.some((line) => line.startsWith(`ray==${rayVersion} `))).toBe(true);
  // The licence of Geneva does not allow its redistribution.
  expect(requirements.filter((line) => line.startsWith("geneva"))).toEqual([]);
});
