import { z } from "zod";

/** A part of JSON Schema, as zod creates it for the contracts of jobs. */
interface Schema {
  readonly $ref?: string;
  readonly $defs?: Readonly<Record<string, Schema>>;
  readonly type?: string | readonly string[];
  readonly enum?: readonly string[];
  readonly const?: string;
  readonly items?: Schema;
  readonly anyOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
  readonly additionalProperties?: Schema | boolean;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
}

const heading = `"""The requests, responses and exit codes of jobs, which test/runner/python-models.test.ts generates."""

from __future__ import annotations

from enum import IntEnum
from typing import Any, Literal, NotRequired, TypedDict
`;
/** The fields of every request, which the job does not send. */
const common = ["identity", "context", "id"];

/** Returns a Python module with an IntEnum, and a TypedDict for each schema and for each object in it, which mypy checks. */
export function pythonModels(
  schemas: Readonly<Record<string, z.ZodObject>>,
  exitCodes: Readonly<Record<string, number>>,
): string {
  const classes = new Map<string, string>();
  for (const [name, zod] of Object.entries(schemas)) {
    const root: Schema = z.toJSONSchema(zod, { io: "input" }) as Schema;
    const types = new PythonTypes(root.$defs ?? {}, classes);
    types.defineClass(name, types.resolve(root));
  }
  const codes = Object.entries(exitCodes).map(([name, code]) => `    ${name} = ${code}`);
  return `${heading}\n\nclass Exit(IntEnum):\n${codes.join("\n")}\n${[...classes.values()].join("")}`;
}

/** The Python types of the schemas of one document. */
class PythonTypes {
  readonly #definitions: Readonly<Record<string, Schema>>;
  readonly #classes: Map<string, string>;

  constructor(definitions: Readonly<Record<string, Schema>>, classes: Map<string, string>) {
    this.#definitions = definitions;
    this.#classes = classes;
  }

  resolve(schema: Schema): Schema {
    return this.#definitions[nameOf(schema) ?? ""] ?? schema;
  }

  /** Defines the classes of the fields before the class itself, so that the module has no forward references. */
  defineClass(name: string, { properties = {}, required = [] }: Schema): void {
    const fields = Object.entries(properties)
      .filter(([field]) => !common.includes(field))
      .map(([field, schema]) => {
        const type = this.#typeOf(schema, `${name}${pascalCase(field)}`);
        return `    ${field}: ${required.includes(field) ? type : `NotRequired[${type}]`}`;
      });
    this.#classes.set(name, `\n\nclass ${name}(TypedDict):\n${fields.join("\n")}\n`);
  }

  /** @param nameless The name of the class of an object without its own name. */
  #typeOf(schema: Schema, nameless: string): string {
    const {
      type,
      enum: words,
      const: word,
      items,
      anyOf,
      oneOf,
      additionalProperties,
      properties,
    } = this.resolve(schema);
    const name = nameOf(schema) ?? nameless;
    if (words !== undefined) return `Literal[${words.map((each) => JSON.stringify(each)).join(", ")}]`;
    if (word !== undefined) return `Literal[${JSON.stringify(word)}]`;
    const variants = anyOf ?? oneOf;
    if (variants !== undefined)
      return variants.map((each, index) => this.#typeOf(each, `${name}${index + 1}`)).join(" | ");
    if (properties !== undefined) {
      this.defineClass(name, this.resolve(schema));
      return name;
    }
    if (Array.isArray(type)) return type.map((each) => this.#typeOf({ type: each }, name)).join(" | ");
    switch (type) {
      case "string":
        return "str";
      case "integer":
        return "int";
      case "number":
        return "float";
      case "boolean":
        return "bool";
      case "null":
        return "None";
      case "array":
        return `list[${this.#typeOf(items ?? {}, nameless)}]`;
      case "object":
        if (typeof additionalProperties === "object")
          return `dict[str, ${this.#typeOf(additionalProperties, nameless)}]`;
    }
    if (type === undefined) return "Any";
    throw new Error(`no Python type for a schema of the type ${type}`);
  }
}

function nameOf({ $ref }: Schema): string | undefined {
  return $ref?.split("/").at(-1);
}

function pascalCase(field: string): string {
  return field.replaceAll(/(?:^|_)([a-z])/g, (_, letter: string) => letter.toUpperCase());
}
