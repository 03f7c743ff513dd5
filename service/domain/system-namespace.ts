import { contracts, type Identifier } from "@tiltyard/protocol";
import { findNamespace, insertNamespace } from "../store/namespaces.ts";
import type { Store } from "../store/store.ts";
import { prepareAudit } from "./audit.ts";
import type { Origin } from "./transaction.ts";

/** Where Geneva's clients keep their records of jobs. They make tables there, and expect that it exists. */
export const systemNamespace: Identifier = ["__system"];

/** Makes the namespace that Geneva's clients need, before the first job of Geneva. */
export async function ensureSystemNamespace(store: Store, origin: Origin): Promise<void> {
  if ((await findNamespace(store.read, systemNamespace)) !== undefined) return;
  const audit = prepareAudit({ ...origin, contract: contracts.createNamespace, objects: [systemNamespace] });
  await store.write(async (session) => {
    if ((await findNamespace(session, systemNamespace)) !== undefined) return;
    await insertNamespace(session, { identifier: systemNamespace, properties: {} });
    await audit.record(session);
  });
}
