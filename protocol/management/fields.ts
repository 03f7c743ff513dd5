import { z } from "zod";
import { roles } from "../contract.ts";
import { id, shownAs, word } from "../fields.ts";
import { transactionStatuses } from "../operations/transaction.ts";

const principalLengthMax = 256;

/** The owner of an API key, or the subject of a token. */
export const PrincipalName = z
  .string()
  .min(1, "must not be empty")
  .max(principalLengthMax, `must have at most ${principalLengthMax} characters`)
  .refine((name) => name.isWellFormed() && !/\p{Cc}/u.test(name), "must be text without control characters")
  .describe("The owner of an API key, or the subject of a token.");

export const Grant = z
  .object({ namespace: id.describe("The parts of a namespace's identifier; [] is the root."), role: z.enum(roles) })
  .meta({ id: "Grant", description: "A role on a namespace and everything under it." });

/** Milliseconds since the epoch. */
export const timeMillis = z.int().min(0);

/** Statuses in a query, separated by commas. */
export const statusesInQuery = z
  .string()
  .transform((text) => text.split(",").map((each) => each.trim()))
  .pipe(z.array(word(transactionStatuses)))
  .meta(shownAs({ type: "string" }))
  .describe(`Some of ${transactionStatuses.join(", ")}, separated by commas.`);
