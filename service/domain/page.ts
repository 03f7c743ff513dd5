import { CatalogError } from "@tiltyard/protocol";
import { z } from "zod";

/** The most items of one answer, and their number when a request names no limit. */
const pageSizeMax = 1000;
/** The most characters of one answer's items, as JSON. A page has one item at least. */
const pageLengthMax = 1024 * 1024;
/** One in so many items of a page is read at first: what they are like tells how many more fit into it. */
const readAtFirst = 1 / 10;

const Token = z.tuple([z.string(), z.array(z.union([z.string(), z.int()]))]);

/** Where a page begins: behind the item with this key. */
export type Cursor = readonly (string | number)[];

/**
 * Reads one page of a list. Its token holds the key of the last item, not a position, so
 * that rows that come and go in between are neither skipped nor repeated.
 *
 * @param list Names the list, so that the token of one is refused by another.
 * @param read Gets the items from behind the cursor on, in order; undefined is the beginning.
 * @throws CatalogError InvalidInput for a token that this list did not give out.
 */
export async function readPage<Item>(
  list: string,
  request: { readonly page_token?: string | undefined; readonly limit?: number | undefined },
  read: (cursor: Cursor | undefined, limit: number) => Promise<Item[]>,
  keyOf: (item: Item) => Cursor,
): Promise<{ readonly items: Item[]; readonly page_token?: string }> {
  const readFrom = async (cursor: Cursor | undefined, limit: number) => {
    const found = await read(cursor, limit + 1);
    const items = found.slice(0, limit);
    const last = items.at(-1);
    return { items, next: found.length > limit && last !== undefined ? keyOf(last) : undefined };
  };
  return readScannedPage(list, request, readFrom, keyOf);
}

/**
 * Reads one page of a list that is searched a piece at a time: as `readPage`, but what reads it
 * says itself where the next page begins, and a page may have no items and not be the last.
 *
 * @param most The most items of a page; fewer for those that may be large.
 */
export async function readScannedPage<Item>(
  list: string,
  request: { readonly page_token?: string | undefined; readonly limit?: number | undefined },
  read: (cursor: Cursor | undefined, limit: number) => Promise<Part<Item>>,
  keyOf: (item: Item) => Cursor,
  most = pageSizeMax,
): Promise<{ readonly items: Item[]; readonly page_token?: string }> {
  const limit = Math.min(request.limit ?? most, most);
  // An empty token is the beginning: the protocol lets it stand for "no more" in answers.
  const cursor = request.page_token ? readToken(list, request.page_token) : undefined;
  const asked = Math.min(limit, most * readAtFirst);
  let { items, next } = fitting(await read(cursor, asked), pageLengthMax, keyOf);
  const left = Math.min(limit - items.length, roomFor(items));
  if (next !== undefined && items.length === asked && left > 0) {
    const rest = fitting(await read(next, left), pageLengthMax - lengthOf(items), keyOf);
    items = [...items, ...rest.items];
    next = rest.next;
  }
  if (next === undefined) return { items };
  return { items, page_token: Buffer.from(JSON.stringify([list, next])).toString("base64url") };
}

/** Some of a list's items, and where what follows them begins; undefined where nothing does. */
interface Part<Item> {
  readonly items: Item[];
  readonly next: Cursor | undefined;
}

/** As much of a part as has so many characters, and one item of it in any case. */
function fitting<Item>({ items, next }: Part<Item>, lengthMax: number, keyOf: (item: Item) => Cursor): Part<Item> {
  let length = 0;
  for (const [index, item] of items.entries()) {
    length += lengthOf(item);
    const before = items[index - 1];
    if (length > lengthMax && before !== undefined) return { items: items.slice(0, index), next: keyOf(before) };
  }
  return { items, next };
}

/** How many items like the longest of these would still fit into the page. */
function roomFor(items: readonly unknown[]): number {
  return Math.floor((pageLengthMax - lengthOf(items)) / Math.max(1, ...items.map(lengthOf)));
}

function lengthOf(value: unknown): number {
  return JSON.stringify(value).length;
}

function readToken(list: string, token: string): Cursor {
  try {
    const [of, cursor] = Token.parse(JSON.parse(Buffer.from(token, "base64url").toString("utf8")));
    if (of === list) return cursor;
  } catch {
    // Falls through to the one error that a bad token has.
  }
  throw new CatalogError("InvalidInput", "page_token: is not one that this list gave out");
}
