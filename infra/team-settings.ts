import { z } from "zod";
import { dnsLabel, quantity, textMap } from "./setting-types.ts";
import { versions } from "./versions.ts";

/** The most that pods of a namespace ask for together; with Kueue, what its queue lets in. */
export const Quota = z.strictObject({
  cpu: quantity,
  memory: quantity,
  gpus: z.int().nonnegative().default(0),
});
export type QuotaSettings = z.output<typeof Quota>;

const team = {
  /** Also of its folder of the bucket, which is where the catalog puts the tables of the namespace of this name. */
  name: z
    .string()
    .regex(/^[a-z]([-a-z0-9]{0,18}[a-z0-9])?$/, "must be lower-case letters, digits and dashes, 20 at most"),
  /** Of its Ray clusters; that of the stack with the team's name when absent. */
  namespace: dnsLabel.optional(),
  /** Principals that may make Ray clusters there, written as those of the stack are. */
  clientPrincipals: z.array(z.string()).default([]),
  quota: Quota.optional(),
};

export const Teams = z.array(z.strictObject(team)).default([]);
/** Of a cluster whose pods have identities that the stack does not make. */
export const TeamsOnExisting = z
  .array(z.strictObject({ ...team, serviceAccountAnnotations: textMap.default({}) }))
  .default([]);

/** A team whose names are all there. */
export interface Team {
  readonly name: string;
  readonly namespace: string;
  readonly clientPrincipals: readonly string[];
  readonly quota?: QuotaSettings | undefined;
  readonly serviceAccountAnnotations?: Readonly<Record<string, string>>;
}

export function teamNamespace(
  namespace: string,
  team: { readonly name: string; readonly namespace?: string | undefined },
) {
  return team.namespace ?? `${namespace}-${team.name}`;
}

/** Queues in front of Ray jobs: of a Kueue that the stack installs, or of one that is there. */
export const Kueue = z.discriminatedUnion("source", [
  z.strictObject({ source: z.literal("helm"), version: z.string().default(versions.kueue) }),
  z.strictObject({ source: z.literal("none") }),
]);
export type KueueSettings = z.output<typeof Kueue>;
