import { z } from "zod";
import { characters, list, text } from "../bounds.ts";
import { id, shownAs, word } from "../fields.ts";
import { roles } from "../roles.ts";
import { transactionStatuses } from "../transaction-status.ts";

const principalLengthMax = 256;

/**
 * The prefixes of principals without an API key. Owners of keys cannot have them, so no kind of principal can act as
 * another.
 */
export const tokenPrefix = "oidc:";
export const jobPrefix = "job:";
/** The principal of the jobs that look after Geneva's records. */
export const catalogPrincipal = "catalog";
/** The names that the audit uses for the catalog itself. */
const reserved: readonly string[] = ["unknown", catalogPrincipal];

export const PrincipalName = text(principalLengthMax)
  .min(1, "must not be empty")
  .refine((name) => !/\p{Cc}/u.test(name), "must be text without control characters")
  .describe("The owner of an API key, or `oidc:` and the subject of a token.");

/** A principal that an API key can be created for. */
export const KeyOwner = PrincipalName.refine(
  (name) => !name.startsWith(tokenPrefix) && !name.startsWith(jobPrefix) && !reserved.includes(name),
  `must not begin with ${tokenPrefix} or ${jobPrefix}, and not be ${reserved.join(" or ")}`,
);

export const Grant = z
  .object({ namespace: id.describe("The parts of a namespace's identifier; [] is the root."), role: z.enum(roles) })
  .meta({ id: "Grant", description: "A role on a namespace and its descendants." });

/** Milliseconds since the epoch. */
export const timeMillis = z.int().min(0);

/** The statuses in a query, separated by commas or as repeated parameters. */
export const statusesInQuery = z
  .preprocess((given) => (Array.isArray(given) ? given.join(",") : given), text(characters.name))
  .transform((given) => given.split(",").map((each) => each.trim()))
  .pipe(list(word(transactionStatuses), characters.name))
  .meta(shownAs({ type: "string" }))
  .describe(`Statuses: ${transactionStatuses.join(", ")}, separated by commas.`);
