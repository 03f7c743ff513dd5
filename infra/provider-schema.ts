import { StackOutputs, secretOutputs } from "@tiltyard/protocol";
import { z } from "zod";
import { settingsOfVariant } from "./settings.ts";

/** The type of the component in Pulumi's programs. */
export const platformType = "tiltyard:index:Platform";

type Property = Readonly<Record<string, unknown>>;

const reference = "docs/reference/stack.md describes the fields.";
/** A structure that the provider validates itself. */
const anything = { $ref: "pulumi.json#/Any" };
const secretInputs = ["kubeconfig"];

/** Returns Pulumi's schema of the package, from which its command generates libraries for other languages. */
export function packageSchema(version: string) {
  const settings = settingsOfVariant.existing;
  const outputs = StackOutputs.shape;
  return {
    name: "tiltyard",
    displayName: "Tiltyard",
    version,
    description: "Ray on Kubernetes and a Lance catalog",
    resources: {
      [platformType]: {
        isComponent: true,
        description: "Ray, the catalog and the runner of its jobs on a Kubernetes cluster.",
        inputProperties: propertiesOf(settings, "input", secretInputs),
        requiredInputs: requiredOf(settings),
        properties: propertiesOf(outputs, "output", secretOutputs),
        required: requiredOf(outputs),
      },
    },
    language: { python: { pyproject: { enabled: true } } },
  };
}

function propertiesOf(shape: z.ZodRawShape, io: "input" | "output", secrets: readonly string[]) {
  return Object.fromEntries(
    Object.entries(shape).map(([name, schema]) => {
      const { description = reference, ...type } = propertyOf(schema, io);
      return [name, { description, ...type, ...(secrets.includes(name) && { secret: true }) }];
    }),
  );
}

function propertyOf(schema: z.core.$ZodType, io: "input" | "output"): Property {
  const { type, items, description } = z.toJSONSchema(schema, { io, unrepresentable: "any" });
  const described = description === undefined ? {} : { description };
  if (type === "string" || type === "boolean") return { ...described, type };
  const isList = type === "array" && typeof items === "object" && !Array.isArray(items) && items.type === "string";
  return { ...described, ...(isList ? { type: "array", items: { type: "string" } } : anything) };
}

function requiredOf(shape: z.ZodRawShape): string[] {
  return Object.entries(shape).flatMap(([name, schema]) => (z.safeParse(schema, undefined).success ? [] : [name]));
}
