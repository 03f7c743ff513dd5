import { randomUUID } from "node:crypto";

const millisLength = "xxxxxxxx-xxxx".length;
const lastDigits = 12;
let lastId = "";

/** Sorts behind every id. */
export const afterEveryId = "g";

/**
 * Makes an id for an audit record or a job. Ids sort by the time they were made, so that new rows go to
 * the end of the index. Within a millisecond, or while the clock is put back, each of this process is one
 * more than the one before.
 */
export function nextTransactionId(): string {
  // Of version 4 but for the time and the version: Node 22 makes no version 7.
  const fresh = `${idAt(Date.now())}-7${randomUUID().slice("xxxxxxxx-xxxx-V".length)}`;
  const next = (Number.parseInt(lastId.slice(-lastDigits), 16) + 1).toString(16).padStart(lastDigits, "0");
  const isLater = fresh.slice(0, millisLength) > lastId.slice(0, millisLength);
  lastId = isLater || next.length > lastDigits ? fresh : lastId.slice(0, -lastDigits) + next;
  return lastId;
}

/** What an id of this time begins with: its first 48 bits are milliseconds (RFC 9562, UUID version 7). */
export function idAt(millis: number): string {
  if (millis >= 2 ** 48) return afterEveryId;
  const digits = Math.max(0, millis).toString(16).padStart(12, "0");
  return `${digits.slice(0, 8)}-${digits.slice(8)}`;
}
