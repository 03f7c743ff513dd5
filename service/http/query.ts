import { LRUCache } from "lru-cache";

/** The values of each name in a query, decoded, in the order in which they came. */
export type Query = ReadonlyMap<string, readonly string[]>;

/** How many queries are cached, and how long such a query may be: clients send few different ones. */
const queriesKept = 1_000;
const keptLengthMax = 200;

const kept = new LRUCache<string, Query>({ max: queriesKept });

/** @param text Without the question mark. @returns The same map for a text that is cached. */
export function readQuery(text: string): Query {
  const known = kept.get(text);
  if (known !== undefined) return known;
  const query = new Map<string, string[]>();
  for (const [name, value] of new URLSearchParams(text)) {
    const values = query.get(name);
    if (values === undefined) query.set(name, [value]);
    else values.push(value);
  }
  if (text.length <= keptLengthMax) kept.set(text, query);
  return query;
}
