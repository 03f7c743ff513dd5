import type { AnyContract } from "@tiltyard/protocol";
import { type Command, InvalidArgumentError, Option } from "commander";
import type { z } from "zod";

/** Fields that a command has from elsewhere: its argument, the key in the environment; jobs work on main alone. */
const fromElsewhere = ["id", "identity", "context", "branch"] as const;
type FromElsewhere = (typeof fromElsewhere)[number];

/** The fields of a request that a command has as options. */
export type RequestFields<C extends AnyContract> = Omit<z.output<C["body"]>, FromElsewhere>;

/** Adds an option for each field of a request, `--keep-versions` for `keep_versions`, which takes what the catalog takes. */
export function addRequestOptions(command: Command, { body }: AnyContract): Command {
  for (const [field, schema] of fieldsOf(body)) {
    const isRequired = !accepts(schema, undefined);
    const description = [schema.description ?? "", isRequired ? "(required)" : ""].join(" ").trim();
    const option = new Option(
      `--${field.replaceAll("_", "-")} <${accepts(schema, 1) ? "number" : "text"}>`,
      description,
    );
    command.addOption(option.argParser((text) => parsed(schema, text)).makeOptionMandatory(isRequired));
  }
  return command;
}

/** The fields that the options of a command have, by their names in the protocol. */
export function requestOf<C extends AnyContract>({ body }: C, command: Command): RequestFields<C> {
  const given = command.opts<Record<string, unknown>>();
  const fields = fieldsOf(body).map(([field]) => [field, given[camelCase(field)]]);
  return body.parse(Object.fromEntries(fields)) as RequestFields<C>;
}

function fieldsOf(body: z.ZodObject): readonly [string, z.ZodType][] {
  return Object.entries(body.shape as Record<string, z.ZodType>).filter(
    ([field]) => !fromElsewhere.some((name) => name === field),
  );
}

/** @throws InvalidArgumentError */
function parsed(schema: z.ZodType, text: string): string | number {
  const asText = schema.safeParse(text);
  if (asText.success) return text;
  const number = text.trim() === "" ? Number.NaN : Number(text);
  const { error } = Number.isNaN(number) ? asText : schema.safeParse(number);
  if (error !== undefined) throw new InvalidArgumentError(error.issues.map(({ message }) => message).join(", "));
  return number;
}

function accepts(schema: z.ZodType, value: unknown): boolean {
  return schema.safeParse(value).success;
}

/** As commander names the value of an option. */
function camelCase(field: string): string {
  return field.replaceAll(/_(.)/g, (_, letter: string) => letter.toUpperCase());
}
