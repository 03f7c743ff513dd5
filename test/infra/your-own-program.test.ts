import * as pulumi from "@pulumi/pulumi";
import { expect, test } from "vitest";
import { cloudOutputs } from "../support/clouds.ts";
import { setMocks } from "../support/pulumi-mocks.ts";

type Inputs = Record<string, Record<string, unknown>>;

test("the example of a program of one's own puts Ray and the catalog on its cluster", async () => {
  const asked: { type: string; name: string; inputs: Inputs }[] = [];
  await setMocks(
    {
      newResource: ({ type, name, inputs }) => {
        asked.push({ type, name, inputs });
        return { id: `${name}-id`, state: cloudOutputs(type, name, inputs) };
      },
      call: () => ({}),
    },
    "your-own-program",
  );
  pulumi.runtime.setAllConfig({
    "your-own-program:bucket": "s3://tables/lance",
    "your-own-program:databaseUrl": "postgres://u:hunter2@db:6000/t",
  });
  const program = await import("../../examples/your-own-program/index.ts");
  expect(program.catalogUrl).toBe("http://tiltyard-catalog.features-catalog.svc:2333");
  await new Promise((resolve) => program.catalogApiKey.apply(resolve));
  expect(await pulumi.isSecret(program.catalogApiKey)).toBe(true);
  await pulumi.runtime.disconnect();

  const one = (type: string, name: string) =>
    asked.find((each) => each.type.endsWith(type) && each.name === name)?.inputs;
  expect(one(":Namespace", "ray")?.metadata?.name).toBe("features");
  expect(one(":Namespace", "catalog")?.metadata?.name).toBe("features-catalog");
  expect(one(":Deployment", "catalog")?.spec).toMatchObject({ replicas: 2 });
  const { rayClusters } = JSON.parse(String(one(":ConfigMap", "runner")?.data?.["runner.yaml"]));
  expect(rayClusters.default).toMatchObject({
    namespace: "features",
    image: "registry.example.com/tiltyard-ray:0.1.0",
    worker_groups: [{ num_cpus: 8 }],
  });
  expect(one(":RoleBinding", "ray-client")?.subjects).toMatchObject([{ kind: "Group", name: "ml-engineers" }]);
  // The URL of the database appears only in the secret. The network policy contains only its port.
  const showing = asked.filter(({ inputs }) => JSON.stringify(inputs).includes("hunter2"));
  expect(showing.map(({ type }) => type)).toEqual(["kubernetes:core/v1:Secret"]);
  expect(JSON.stringify(showing)).toContain("4dabf18193072939515e22adb298388d");
  expect(JSON.stringify(one(":NetworkPolicy", "catalog"))).toContain("6000");
});
