import type { Identifier } from "@tiltyard/protocol";
import { fromPath, toPath } from "./path.ts";
import type { RecordOf } from "./schema.ts";
import type { Session } from "./store.ts";
import { keyOf } from "./transactions.ts";

export interface SecretRecord extends Omit<RecordOf<"secrets">, "namespace"> {
  readonly namespace: Identifier;
}

export async function findSecret({ db }: Session, secret: Identifier): Promise<SecretRecord | undefined> {
  const { namespace, id: name } = keyOf(secret);
  const rows = db.selectFrom("secrets").selectAll().where("namespace", "=", namespace).where("name", "=", name);
  const row = await rows.executeTakeFirst();
  return row && { ...row, namespace: secret.slice(0, -1) };
}

export async function putSecret({ db }: Session, record: SecretRecord): Promise<void> {
  const { ciphertext, nonce, keyId, updatedAtMillis } = record;
  await db
    .insertInto("secrets")
    .values({ ...record, namespace: toPath(record.namespace) })
    .onConflict((conflict) =>
      conflict.columns(["namespace", "name"]).doUpdateSet({ ciphertext, nonce, keyId, updatedAtMillis }),
    )
    .execute();
}

export async function deleteSecret({ db }: Session, secret: Identifier): Promise<void> {
  const { namespace, id: name } = keyOf(secret);
  await db.deleteFrom("secrets").where("namespace", "=", namespace).where("name", "=", name).execute();
}

export async function listSecretsOfOtherKeys({ db }: Session, keyId: string): Promise<Identifier[]> {
  const rows = await db.selectFrom("secrets").select(["namespace", "name"]).where("keyId", "<>", keyId).execute();
  return rows.map(({ namespace, name }) => [...fromPath(namespace), name]);
}

export async function listSecrets({ db }: Session, namespace: Identifier, after: string, limit: number) {
  const names = db.selectFrom("secrets").select("name").where("namespace", "=", toPath(namespace));
  const rows = await names.where("name", ">", after).orderBy("name").limit(limit).execute();
  return rows.map(({ name }) => name);
}
