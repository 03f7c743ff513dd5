import { describe, expect, inject, test } from "vitest";
import { readPath } from "./page.ts";
import { type Followed, follow } from "./stranger.ts";

const packages = inject("packages");

function expectDone({ code, stdout, stderr }: Followed): void {
  expect(code, `${stdout}\n${stderr}`).toBe(0);
}

describe.concurrent("from packages alone", () => {
  test("an ML engineer runs a job that finds the catalog, and the catalog's jobs", async () => {
    const done = await follow(readPath("ML engineer"), packages, 24);
    expectDone(done);
    expect(done.stdout).toContain("films has 1000 rows in 4 fragments");
    expect(done.stdout.trimEnd()).toMatch(/\n1000$/);
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
  });

  test("a developer calls the catalog from a program in strict TypeScript", async () => {
    const done = await follow(readPath("Developer"), packages, 22);
    expectDone(done);
    expect(done.stdout).toMatch(/\[ 'posters' \] file:\/\/\/.*posters/);
    expect(done.stdout).toContain("409 dropNamespace");
  });
});
