import { z } from "zod";
import { problemOfIdentifier } from "./identifier.ts";

/** An optional field of a request: generated clients send `null` for what they leave out. */
export function optional<Schema extends z.ZodType>(schema: Schema) {
  return schema.nullish().transform((value) => value ?? undefined);
}

/** A word that the protocol takes in any letter case and in PascalCase or snake_case, e.g. `ExistOk`, `exist_ok`. */
export function word<const Words extends readonly [string, ...string[]]>(words: Words) {
  const fold = (text: string) => text.replaceAll("_", "").toLowerCase();
  const byFolded = new Map<string, Words[number]>(words.map((each) => [fold(each), each]));
  return z
    .string()
    .transform((text, context): Words[number] => {
      const found = byFolded.get(fold(text));
      if (found !== undefined) return found;
      context.addIssue({ code: "custom", message: `must be one of ${words.join(", ")}` });
      return z.NEVER;
    })
    .meta({ description: `One of ${words.join(", ")}; case-insensitive, PascalCase or snake_case.` });
}

/** An integer from 0 to 2^53-1. The protocol says int64: what JSON cannot carry exactly is refused, never rounded. */
export const count = z.int().min(0);

export const Identity = z
  .object({ api_key: optional(z.string()), auth_token: optional(z.string()) })
  .meta({ id: "Identity", description: "Credentials, for callers that cannot set headers." });

export const Context = z
  .record(z.string(), z.string())
  .meta({ id: "Context", description: "Free-form entries that a caller and the service hand each other." });

export const Properties = z.record(z.string(), z.string());

/** An object's identifier as a list of its parts. */
export const id = z.array(z.string()).superRefine((parts, context) => {
  const problem = problemOfIdentifier(parts);
  if (problem !== undefined) context.addIssue({ code: "custom", message: problem });
});

/** The fields that every request body may have. */
export const commonRequest = {
  identity: optional(Identity),
  context: optional(Context),
  id: optional(id),
};

export const branch = optional(z.string()).describe("The branch to use; the main branch when absent.");

/** Query parameters are text: these read a boolean and an integer from it. */
export const queryBoolean = z
  .enum(["true", "false"])
  .transform((text) => text === "true")
  .meta({ override: { type: "boolean" } });
export const queryInteger = z
  .string()
  .regex(/^-?\d+$/, "must be an integer")
  .transform(Number)
  .pipe(z.int())
  .meta({ override: { type: "integer" } });

/** Where a list goes on, and how many items it may answer. */
export const pageQuery = {
  page_token: z.string().optional().describe("The `page_token` of the answer before this one."),
  limit: queryInteger.pipe(z.int().min(1)).optional().describe("The most items to answer, from 1 on."),
};

/** What the service hands back to a caller, in any answer that is an object. */
export const context = Context.optional();

export const pageResponse = {
  page_token: z.string().optional().describe("Present when there are more items: ask again with it."),
};
