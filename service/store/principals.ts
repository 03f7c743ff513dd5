import type { Identifier, Role } from "@tiltyard/protocol";
import { sql } from "kysely";
import { fromPath, isWithin, type Subtree, subtree, toPath } from "./path.ts";
import type { Schema } from "./schema.ts";
import { statement } from "./statement.ts";
import type { Session } from "./store.ts";

/** A role on a namespace and all that is under it. */
export interface Grant {
  readonly namespace: Identifier;
  readonly role: Role;
}

export interface ApiKeyRecord {
  readonly id: string;
  readonly principal: string;
  readonly createdAtMillis: number;
}

/** Which attempt of a job a key is for. */
export interface JobAttempt {
  readonly id: string;
  readonly attempt: number;
}

const upsertKey = statement((db, p: Schema["api_keys"]) =>
  db
    .insertInto("api_keys")
    .values({
      id: p.id,
      principal: p.principal,
      hash: p.hash,
      created_at: p.created_at,
      job: p.job,
      attempt: p.attempt,
    })
    .onConflict((conflict) =>
      conflict.column("id").doUpdateSet((eb) => ({
        principal: eb.ref("excluded.principal"),
        hash: eb.ref("excluded.hash"),
      })),
    ),
);

/**
 * Stores the hash of an API key; a key of this id is replaced.
 *
 * @param of The attempt that it is for, if it is for one.
 */
export async function putApiKey(
  session: Session,
  id: string,
  principal: string,
  hash: string,
  of?: JobAttempt,
): Promise<void> {
  const { id: job = null, attempt = null } = of ?? {};
  await session.run(upsertKey, { id, principal, hash, created_at: Date.now(), job, attempt });
}

const findKey = statement((db, p: { hash: string }) =>
  db.selectFrom("api_keys").select(["principal", "job", "attempt"]).where("hash", "=", p.hash),
);

/** The principal of the key with this hash, and the attempt that it is for. */
export async function findApiKey(
  session: Session,
  hash: string,
): Promise<{ readonly principal: string; readonly of: JobAttempt | undefined } | undefined> {
  const row = await session.first(findKey, { hash });
  if (row === undefined) return undefined;
  const { principal, job, attempt } = row;
  return { principal, of: job === null ? undefined : { id: job, attempt: Number(attempt) } };
}

const removeJobKeys = statement((db, p: { job: string; endedBefore: number }) =>
  db.deleteFrom("api_keys").where(({ eb, and, or, not, exists, selectFrom }) =>
    or([
      eb("job", "=", p.job),
      and([
        eb("job", "is not", null),
        not(
          exists(
            selectFrom("jobs")
              .select("jobs.id")
              .whereRef("jobs.id", "=", "api_keys.job")
              .where((job) =>
                job.or([job("jobs.status", "in", ["Queued", "Running"]), job("jobs.updated_at", ">=", p.endedBefore)]),
              ),
          ),
        ),
      ]),
    ]),
  ),
);

/** Deletes the keys of a job, and those of jobs that ended before a time. */
export async function deleteJobKeys(session: Session, job: string, endedBefore: number): Promise<void> {
  await session.run(removeJobKeys, { job, endedBefore });
}

const removeKey = statement((db, p: { id: string }) =>
  db.deleteFrom("api_keys").where("id", "=", p.id).returning("principal"),
);

/** @returns Whose key it was; undefined when there was no such key. */
export async function deleteApiKey(session: Session, id: string): Promise<string | undefined> {
  return (await session.first(removeKey, { id }))?.principal;
}

/** Where a page of a list begins, and how many items it has. */
interface Page<Key> {
  /** The key of the item to go on behind; the beginning when undefined. */
  readonly after?: Key | undefined;
  readonly limit: number;
}

/** Everything, in one page. */
const everything: Page<never> = { limit: Number.MAX_SAFE_INTEGER };
/** Stands for any principal: none has an empty name. */
const anyPrincipal = "";

const listKeys = statement((db, p: { principal: string; created_at: number; id: string; limit: number }) =>
  db
    .selectFrom("api_keys")
    .select(["id", "principal", "created_at"])
    .where(({ eb, val }) =>
      eb.or([eb(val(p.principal), "=", sql.lit(anyPrincipal)), eb("principal", "=", p.principal)]),
    )
    .where(({ eb, refTuple, tuple }) => eb(refTuple("created_at", "id"), ">", tuple(p.created_at, p.id)))
    .orderBy("created_at")
    .orderBy("id")
    .limit(p.limit),
);

/** The keys of a principal, or all, the oldest first. */
export async function listApiKeys(
  session: Session,
  principal: string = anyPrincipal,
  { after, limit }: Page<Pick<ApiKeyRecord, "createdAtMillis" | "id">> = everything,
): Promise<ApiKeyRecord[]> {
  const rows = await session.all(listKeys, {
    principal,
    created_at: after?.createdAtMillis ?? -1,
    id: after?.id ?? "",
    limit,
  });
  return rows.map((row) => ({ id: row.id, principal: row.principal, createdAtMillis: row.created_at }));
}

/** A principal with a key or a role, and how many of each. */
export interface PrincipalSummary {
  readonly principal: string;
  readonly apiKeys: number;
  readonly grants: number;
}

const listNames = statement((db, p: { after: string; limit: number }) =>
  db
    .selectFrom(
      db.selectFrom("api_keys").select("principal").union(db.selectFrom("grants").select("principal")).as("named"),
    )
    .select(({ selectFrom, fn }) => [
      "principal",
      selectFrom("api_keys")
        .select(fn.countAll<number>().as("n"))
        .whereRef("principal", "=", "named.principal")
        .as("keys"),
      selectFrom("grants")
        .select(fn.countAll<number>().as("n"))
        .whereRef("principal", "=", "named.principal")
        .as("roles"),
    ])
    .where("principal", ">", p.after)
    .orderBy("principal")
    .limit(p.limit),
);

/** The principals from behind the name `after` on, by name. */
export async function listPrincipals(session: Session, after: string, limit: number): Promise<PrincipalSummary[]> {
  const rows = await session.all(listNames, { after, limit });
  return rows.map((row) => ({ principal: row.principal, apiKeys: Number(row.keys), grants: Number(row.roles) }));
}

const upsertGrant = statement((db, p: { principal: string; namespace: string; role: string }) =>
  db
    .insertInto("grants")
    .values({ principal: p.principal, namespace: p.namespace, role: p.role })
    .onConflict((conflict) =>
      conflict.columns(["principal", "namespace"]).doUpdateSet((eb) => ({ role: eb.ref("excluded.role") })),
    ),
);

/** Gives a principal a role on a namespace, in place of the one that it had there. */
export async function putGrant(session: Session, principal: string, grant: Grant): Promise<void> {
  await session.run(upsertGrant, { principal, namespace: toPath(grant.namespace), role: grant.role });
}

const removeGrant = statement((db, p: { principal: string; namespace: string }) =>
  db.deleteFrom("grants").where("principal", "=", p.principal).where("namespace", "=", p.namespace),
);

/** @returns Whether the principal had a role on the namespace. */
export async function deleteGrant(session: Session, principal: string, namespace: Identifier): Promise<boolean> {
  return (await session.run(removeGrant, { principal, namespace: toPath(namespace) })) > 0;
}

const listOf = statement((db, p: { principal: string }) =>
  db.selectFrom("grants").select(["namespace", "role"]).where("principal", "=", p.principal),
);

export async function listGrantsOf(session: Session, principal: string): Promise<Grant[]> {
  const rows = await session.all(listOf, { principal });
  return rows.map((row) => ({ namespace: fromPath(row.namespace), role: row.role as Role }));
}

const listWithin = statement((db, p: Subtree & { principal: string; after: string; behind: string; limit: number }) =>
  db
    .selectFrom("grants")
    .select(["principal", "namespace", "role"])
    .where(isWithin("namespace", p))
    .where(({ eb, val }) =>
      eb.or([eb(val(p.principal), "=", sql.lit(anyPrincipal)), eb("principal", "=", p.principal)]),
    )
    .where(({ eb, refTuple, tuple }) => eb(refTuple("principal", "namespace"), ">", tuple(p.after, p.behind)))
    .orderBy("principal")
    .orderBy("namespace")
    .limit(p.limit),
);

export interface PrincipalGrant extends Grant {
  readonly principal: string;
}

/** The roles of a principal, or of all, on a namespace and on what is under it, by principal. */
export async function listGrants(
  session: Session,
  within: Identifier = [],
  principal: string = anyPrincipal,
  { after, limit }: Page<Pick<PrincipalGrant, "principal" | "namespace">> = everything,
): Promise<PrincipalGrant[]> {
  const rows = await session.all(listWithin, {
    ...subtree(within),
    principal,
    after: after?.principal ?? "",
    behind: toPath(after?.namespace ?? []),
    limit,
  });
  return rows.map((row) => ({
    principal: row.principal,
    namespace: fromPath(row.namespace),
    role: row.role as Role,
  }));
}
