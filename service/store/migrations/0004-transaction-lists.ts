import { type Kysely, sql } from "kysely";

/**
 * Adds the indices of lists of transactions: of one object, of several objects, and of open transactions. The planner
 * uses them only if the lists spell their conditions exactly as these indices do.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`create index transactions_of_one on transactions (objects, id) where objects not like '%],[%'`.execute(db);
  await sql`create index transactions_of_several on transactions (id) where objects like '%],[%'`.execute(db);
  await sql`create index transactions_open on transactions (id) where status in ('Queued', 'Running')`.execute(db);
}
