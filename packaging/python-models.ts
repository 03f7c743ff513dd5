import { z } from "zod";

/** A part of JSON Schema, as zod creates it for the contracts of jobs. */
interface Schema {
  readonly $ref?: string;
  readonly $defs?: Readonly<Record<string, Schema>>;
  readonly type?: string;
  readonly enum?: readonly string[];
  readonly items?: Schema;
  readonly anyOf?: readonly Schema[];
  readonly additionalProperties?: Schema | boolean;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
}

const heading = `"""The requests and responses of jobs. Generated from the contracts: test/runner/python-models.test.ts."""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict
`;
/** The fields of every request, which the job does not send. */
const common = ["identity", "context", "id"];

/** Returns a Python module with a TypedDict for each schema, which mypy checks. */
export function pythonModels(schemas: Readonly<Record<string, z.ZodObject>>): string {
  const classes = Object.entries(schemas).map(([name, zod]) => {
    const root: Schema = z.toJSONSchema(zod, { io: "input" }) as Schema;
    const resolve = (schema: Schema): Schema => root.$defs?.[schema.$ref?.split("/").at(-1) ?? ""] ?? schema;
    const { properties = {}, required = [] } = resolve(root);
    const fields = Object.entries(properties)
      .filter(([field]) => !common.includes(field))
      .map(([field, schema]) => {
        const type = typeOf(schema, resolve);
        return `    ${field}: ${required.includes(field) ? type : `NotRequired[${type}]`}`;
      });
    return `\n\nclass ${name}(TypedDict):\n${fields.join("\n")}\n`;
  });
  return heading + classes.join("");
}

function typeOf(schema: Schema, resolve: (schema: Schema) => Schema): string {
  const { type, enum: words, items, anyOf, additionalProperties } = resolve(schema);
  if (words !== undefined) return `Literal[${words.map((word) => JSON.stringify(word)).join(", ")}]`;
  if (anyOf !== undefined) return anyOf.map((each) => typeOf(each, resolve)).join(" | ");
  switch (type) {
    case "string":
      return "str";
    case "integer":
      return "int";
    case "null":
      return "None";
    case "array":
      return `list[${typeOf(items ?? {}, resolve)}]`;
    case "object":
      if (typeof additionalProperties === "object") return `dict[str, ${typeOf(additionalProperties, resolve)}]`;
  }
  throw new Error(`no Python type for a schema of the type ${type}`);
}
