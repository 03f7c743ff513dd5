import type { FunctionDefinition, FunctionField } from "./function.ts";

/** The key of the metadata of a column that refers to its Function. */
export const functionBindingKey = "tiltyard.function_binding";

/** Returns a text such as `(text: utf8) -> float64`. */
export function formatSignature({ inputs, output }: FunctionDefinition["signature"]): string {
  const result = output.kind === "scalar" ? output.arrow_type : `{${formatFields(output.fields)}}`;
  return `(${formatFields(inputs)}) -> ${result}`;
}

/** Returns a text such as `text: utf8, factor: float64`. */
export function formatFields(fields: readonly FunctionField[]): string {
  return fields.map(({ name, arrow_type }) => `${name}: ${arrow_type}`).join(", ");
}
