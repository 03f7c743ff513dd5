import type { AnyContract } from "@tiltyard/protocol";
import { fieldDescriptions, ownValue, parsing } from "@tiltyard/protocol";
import { type Command, InvalidArgumentError, Option } from "commander";
import type { z } from "zod";

/**
 * The fields without an option: the argument of the command, the key in the environment, and the branch, because jobs
 * support only `main`.
 */
const fromElsewhere = ["id", "identity", "context", "branch"] as const;
type FromElsewhere = (typeof fromElsewhere)[number];

/** The fields of a request that a command has as options. */
export type RequestFields<C extends AnyContract> = Omit<z.output<C["body"]>, FromElsewhere>;

/**
 * Adds an option for each field of a request, such as `--keep-versions` for `keep_versions`, with the catalog's own
 * validation.
 */
export function addRequestOptions(command: Command, { body }: AnyContract): Command {
  for (const [field, schema] of fieldsOf(body)) {
    const isRequired = !accepts(schema, undefined);
    const text = schema.description ?? ownValue(fieldDescriptions, field) ?? "";
    const description = [text, isRequired ? "(required)" : ""].join(" ").trim();
    const option = new Option(
      `--${field.replaceAll("_", "-")} <${accepts(schema, 1) ? "number" : "text"}>`,
      description,
    );
    command.addOption(option.argParser((text) => parsed(schema, text)).makeOptionMandatory(isRequired));
  }
  return command;
}

/** Returns the values of a command's options by their names in the protocol. */
export function requestOf<C extends AnyContract>({ body }: C, command: Command): RequestFields<C> {
  const given = command.opts<Record<string, unknown>>();
  const fields = fieldsOf(body).map(([field]) => [field, ownValue(given, camelCase(field))]);
  return body.parse(Object.fromEntries(fields)) as RequestFields<C>;
}

function fieldsOf(body: z.ZodObject): readonly [string, z.ZodType][] {
  return Object.entries(body.shape as Record<string, z.ZodType>).filter(
    ([field]) => !fromElsewhere.some((name) => name === field),
  );
}

/** Parses the value of an option. @throws InvalidArgumentError */
function parsed(schema: z.ZodType, text: string): string | number {
  const asText = schema.safeParse(text, parsing);
  if (asText.success) return text;
  const number = text.trim() === "" ? Number.NaN : Number(text);
  const asNumber = schema.safeParse(number, parsing);
  if (asNumber.success) return number;
  const isText = asNumber.error.issues.some(({ code }) => code === "invalid_type");
  const { issues } = isText ? asText.error : asNumber.error;
  throw new InvalidArgumentError(`It ${issues.map(({ message }) => message).join(", and it ")}.`);
}

function accepts(schema: z.ZodType, value: unknown): boolean {
  return schema.safeParse(value).success;
}

/** Returns Commander's name for the value of an option. */
function camelCase(field: string): string {
  return field.replaceAll(/_(.)/g, (_, letter: string) => letter.toUpperCase());
}
