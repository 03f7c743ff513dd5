import * as pulumi from "@pulumi/pulumi";
import { StackOutputs } from "@tiltyard/platform";
import { expect, test } from "vitest";
import { setMocks } from "../support/pulumi-mocks.ts";
import { deployed } from "../support/stack.ts";

const program = new URL("../../examples/stack-consumer/index.ts", import.meta.url);

test.each(["gke", "existing"])("the example of a stack's consumer builds on the outputs of %s", async (variant) => {
  const { outputs } = await deployed(variant, variant === "existing" ? { context: "yard" } : {});
  StackOutputs.parse(outputs);
  const secretOutputNames = "kubeconfig" in outputs ? ["kubeconfig"] : [];
  const asked: { type: string; inputs: Record<string, object> }[] = [];
  await setMocks(
    {
      newResource: ({ type, name, inputs }) => {
        asked.push({ type, inputs });
        const isStack = type === "pulumi:pulumi:StackReference";
        return { id: name, state: isStack ? { ...inputs, outputs, secretOutputNames } : inputs };
      },
      call: () => ({}),
    },
    "tiltyard-stack-consumer",
  );
  pulumi.runtime.setAllConfig({
    "tiltyard-stack-consumer:stack": `us/tiltyard/${variant}`,
    "tiltyard-stack-consumer:apiKey": "tiltyard_key",
  });
  // Each variant needs a separate run of the program and thus a separate module.
  const consumer = await import(`${program.pathname}?${variant}`);
  const known = <Value>(output: pulumi.Output<Value>) => new Promise((resolve) => output.apply(resolve));
  expect(await known(consumer.catalogUrl)).toBe(outputs.catalogUrl);
  expect(await known(consumer.bucketUri)).toBe(outputs.bucketUri);
  await pulumi.runtime.disconnect();
  expect(asked.map(({ type }) => type).sort()).toEqual([
    "kubernetes:core/v1:Secret",
    "pulumi:providers:kubernetes",
    "pulumi:pulumi:StackReference",
  ]);
  const provider = asked.find(({ type }) => type === "pulumi:providers:kubernetes");
  expect(provider?.inputs.context).toBe(variant === "existing" ? "yard" : undefined);
  expect(provider?.inputs.kubeconfig !== undefined).toBe(variant === "gke");
  const secret = asked.find(({ type }) => type === "kubernetes:core/v1:Secret");
  expect(secret?.inputs).toMatchObject({
    metadata: { name: "catalog-key", namespace: outputs.namespace },
    // The value is a secret, which appears neither in the state nor in logs.
    stringData: { value: { apiKey: "tiltyard_key" } },
  });
  expect(Object.keys(secret?.inputs.stringData ?? {})).toContain("4dabf18193072939515e22adb298388d");
});
