import { type Kysely, sql } from "kysely";

/**
 * What lists of transactions need besides the order of their ids: those of one object, those of
 * several, and those that are not over yet. The lists' own conditions are written as these are.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`create index transactions_of_one on transactions (objects, id) where objects not like '%],[%'`.execute(db);
  await sql`create index transactions_of_several on transactions (id) where objects like '%],[%'`.execute(db);
  await sql`create index transactions_open on transactions (id) where status in ('Queued', 'Running')`.execute(db);
}
