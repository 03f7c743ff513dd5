import { CatalogError, formatIdentifier, type Identifier } from "@tiltyard/protocol";
import { keyText, readPage } from "../../domain/page.ts";
import { requireNamespace } from "../../domain/require.ts";
import { makeAudited } from "../../domain/transaction.ts";
import { encryptSecret } from "../../functions/secret-keys.ts";
import * as secrets from "../../store/secrets.ts";
import type { Session } from "../../store/store.ts";
import type { Handler } from "../handler.ts";
import { requireName } from "./function.ts";

export const createSecret: Handler<"createSecret"> = async (request, { store, secretKeys }, caller) => {
  const { id: secret, value } = request;
  const [name, namespace] = [requireName(secret), secret.slice(0, -1)];
  const encrypted = encryptSecret(secretKeys, secret, value);
  await makeAudited(store, { caller, objects: [secret] }, async (session) => {
    await requireNamespace(session, namespace);
    if ((await secrets.findSecret(session, secret)) !== undefined)
      throw new CatalogError(
        "SecretAlreadyExists",
        `the secret ${formatIdentifier(secret)} already exists. Use alter_secret to replace its value`,
      );
    const now = Date.now();
    await secrets.putSecret(session, { namespace, name, ...encrypted, createdAtMillis: now, updatedAtMillis: now });
  });
  return {};
};

export const alterSecret: Handler<"alterSecret"> = async (request, { store, secretKeys }, caller) => {
  const { id: secret, value } = request;
  const encrypted = encryptSecret(secretKeys, secret, value);
  await makeAudited(store, { caller, objects: [secret] }, async (session) => {
    const present = await requireSecret(session, secret);
    // Clients recognize another value by a later time.
    const updatedAtMillis = Math.max(Date.now(), present.updatedAtMillis + 1);
    await secrets.putSecret(session, { ...present, ...encrypted, updatedAtMillis });
  });
  return {};
};

export const describeSecret: Handler<"describeSecret"> = async ({ id }, { store }) => {
  const { name, createdAtMillis, updatedAtMillis } = await requireSecret(store.read, id);
  return { name, created_at_millis: createdAtMillis, updated_at_millis: updatedAtMillis };
};

export const dropSecret: Handler<"dropSecret"> = async ({ id: secret }, { store }, caller) => {
  await makeAudited(store, { caller, objects: [secret] }, async (session) => {
    await requireSecret(session, secret);
    await secrets.deleteSecret(session, secret);
  });
  return {};
};

export const listSecrets: Handler<"listSecrets"> = async (request, { store }) => {
  await requireNamespace(store.read, request.id);
  const { items, ...page } = await readPage({ name: "secrets", key: keyText }, request, (after = "", limit) =>
    secrets.listSecrets(store.read, request.id, after, limit),
  );
  return { secrets: items.map((name) => ({ name })), ...page };
};

/** Returns an existing secret. @throws CatalogError SecretNotFound */
export async function requireSecret(session: Session, secret: Identifier): Promise<secrets.SecretRecord> {
  const found = await secrets.findSecret(session, secret);
  if (found !== undefined) return found;
  throw new CatalogError("SecretNotFound", `the secret ${formatIdentifier(secret)} does not exist`);
}
