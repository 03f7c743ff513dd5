import { type Kysely, sql } from "kysely";
import type { Dialect } from "../dialect.ts";

/** The names in `principal` that stand for the catalog itself. No token ever had them. */
const ofTheCatalog = sql`('unknown', 'operator')`;
/** The longest subject of a token: `oidc:` and the subject must fit into the name of a principal. */
const subjectLengthMax = sql.lit(251);

/**
 * Renames the subjects of tokens to `oidc:` and the subject, so that no token acts as the owner of an API key. A name
 * without a key may be either, so its roles apply to both names. A name with a key belongs to the owner of the key.
 */
export async function up(db: Kysely<unknown>, { text, keptInKeyOrder }: Dialect): Promise<void> {
  await db.schema.alterTable("api_keys").addColumn("creator", text).execute();
  await db.schema.alterTable("jobs").addColumn("api_key", text).execute();
  await db.schema
    .createTable("access_tokens")
    .addColumn("hash", text, (column) => column.primaryKey())
    .addColumn("api_key", text, (column) => column.notNull().references("api_keys.id").onDelete("cascade"))
    .addColumn("expires_at", "bigint", (column) => column.notNull())
    .modifyEnd(keptInKeyOrder)
    .execute();
  await db.schema.createIndex("access_tokens_of_key").on("access_tokens").columns(["api_key", "expires_at"]).execute();
  await db.schema.createIndex("access_tokens_expired").on("access_tokens").column("expires_at").execute();

  const isSubject = sql`principal not in (select principal from api_keys) and principal not in ${ofTheCatalog}
    and principal not like 'job:%' and length(principal) <= ${subjectLengthMax}`;
  await sql`insert into grants (principal, namespace, role)
    select 'oidc:' || principal, namespace, role from grants where ${isSubject}`.execute(db);
  await sql`update automations set principal = 'oidc:' || principal where ${isSubject}`.execute(db);
  await sql`update jobs set principal = 'oidc:' || principal
    where status in ('Queued', 'Running') and ${isSubject}`.execute(db);
}
