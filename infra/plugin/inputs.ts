import * as pulumi from "@pulumi/pulumi";
import { isKnown } from "../components/cluster-provider.ts";

/** Returns the values of inputs. @throws RunError for values that a preview does not know. */
export async function knownValues(inputs: pulumi.Inputs): Promise<Readonly<Record<string, unknown>>> {
  const entries = await Promise.all(
    Object.entries(inputs).map(async ([key, input]) => [key, await known(key, input)] as const),
  );
  return Object.fromEntries(entries.filter(([, value]) => value !== undefined && value !== null));
}

/** Returns the value of an input. @throws RunError if a preview does not know it. */
export async function known<Value>(key: string, input: pulumi.Input<Value>): Promise<pulumi.Unwrap<Value>> {
  const output = pulumi.output(input);
  if (!(await isKnown(output))) throw new pulumi.RunError(`${key}: the value must be known before the deployment`);
  return new Promise((resolve) => output.apply(resolve));
}
