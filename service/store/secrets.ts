import type { Identifier } from "@tiltyard/protocol";
import { fromPath, nameOf, toPath } from "./path.ts";
import type { RecordOf } from "./schema.ts";
import type { Session } from "./store.ts";

export interface SecretRecord extends Omit<RecordOf<"secrets">, "namespace"> {
  readonly namespace: Identifier;
}

export async function findSecret({ db }: Session, secret: Identifier): Promise<SecretRecord | undefined> {
  const rows = db.selectFrom("secrets").selectAll();
  const row = await rows.where((eb) => eb.and(nameOf(secret))).executeTakeFirst();
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
  await db
    .deleteFrom("secrets")
    .where((eb) => eb.and(nameOf(secret)))
    .execute();
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
