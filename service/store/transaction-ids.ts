import { randomUUID } from "node:crypto";

const millisLength = "xxxxxxxx-xxxx".length;
const lastDigits = 12;
let lastId = "";

/** An upper bound of all ids. */
export const afterEveryId = "g";

/**
 * Creates an id for an audit record or a job. Ids sort by the time of their creation, so new rows extend the end of the
 * index. Within a millisecond, or while the clock is set back, each id of this process increments the previous one.
 */
export function nextTransactionId(): string {
  // The result is a UUID of version 4 with the time and the version digit of version 7, which Node 22 cannot create.
  const fresh = `${idAt(Date.now())}-7${randomUUID().slice("xxxxxxxx-xxxx-V".length)}`;
  const next = (Number.parseInt(lastId.slice(-lastDigits), 16) + 1).toString(16).padStart(lastDigits, "0");
  const isLater = fresh.slice(0, millisLength) > lastId.slice(0, millisLength);
  lastId = isLater || next.length > lastDigits ? fresh : lastId.slice(0, -lastDigits) + next;
  return lastId;
}

/** Returns the common prefix of the ids of a time: 48 bits of milliseconds (RFC 9562, UUID version 7). */
export function idAt(millis: number): string {
  if (millis >= 2 ** 48) return afterEveryId;
  const digits = Math.max(0, millis).toString(16).padStart(12, "0");
  return `${digits.slice(0, 8)}-${digits.slice(8)}`;
}
