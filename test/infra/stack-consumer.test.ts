import * as pulumi from "@pulumi/pulumi";
import { StackOutputs } from "@tiltyard/protocol";
import { expect, test } from "vitest";
import { deployed } from "../support/stack.ts";

test("the example of a stack's consumer builds on what a stack tells", async () => {
  const { outputs } = await deployed("gke");
  StackOutputs.parse(outputs);
  const asked: { type: string; inputs: Record<string, object> }[] = [];
  await pulumi.runtime.setMocks(
    {
      newResource: ({ type, name, inputs }) => {
        asked.push({ type, inputs });
        const isStack = type === "pulumi:pulumi:StackReference";
        return { id: name, state: isStack ? { ...inputs, outputs, secretOutputNames: ["kubeconfig"] } : inputs };
      },
      call: () => ({}),
    },
    "tiltyard-stack-consumer",
  );
  pulumi.runtime.setAllConfig({
    "tiltyard-stack-consumer:stack": "us/tiltyard/gke",
    "tiltyard-stack-consumer:apiKey": "tiltyard_key",
  });
  const consumer = await import("../../examples/stack-consumer/index.ts");
  const known = <Value>(output: pulumi.Output<Value>) => new Promise((resolve) => output.apply(resolve));
  expect(await known(consumer.catalogUrl)).toBe(outputs.catalogUrl);
  expect(await known(consumer.bucketUri)).toBe(outputs.bucketUri);
  await pulumi.runtime.disconnect();
  expect(asked.map(({ type }) => type).sort()).toEqual([
    "kubernetes:core/v1:Secret",
    "pulumi:providers:kubernetes",
    "pulumi:pulumi:StackReference",
  ]);
  const secret = asked.find(({ type }) => type === "kubernetes:core/v1:Secret");
  expect(secret?.inputs).toMatchObject({
    metadata: { name: "catalog-key", namespace: outputs.namespace },
    // Marked as a secret, which is kept from the state and from logs.
    stringData: { value: { apiKey: "tiltyard_key" } },
  });
  expect(Object.keys(secret?.inputs.stringData ?? {})).toContain("4dabf18193072939515e22adb298388d");
});
