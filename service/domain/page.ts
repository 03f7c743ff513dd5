import { CatalogError } from "@tiltyard/protocol";
import { z } from "zod";

/** The most items of one answer, and their number when a request names no limit. */
const pageSizeMax = 1000;
/** The most characters of one answer's items, as JSON. A page has one item at least. */
const pageLengthMax = 1024 * 1024;
/** One in so many items of a page is read first: its size tells how many more fit into the page. */
const readAtFirst = 1 / 10;

/** A list that is answered in pages. A token holds its name, so that the token of one list is refused by another. */
export interface List<Key> {
  readonly name: string;
  /** What its tokens hold besides: the key of an item, which the page after it begins behind. */
  readonly key: z.ZodType<Key>;
}

/** A text in a key: all but what no database takes. */
export const keyText = z.string().refine((text) => text.isWellFormed() && !text.includes("\0"));

interface PageRequest {
  readonly page_token?: string | undefined;
  readonly limit?: number | undefined;
}

/**
 * Reads one page of a list. Its token holds the key of the last item, not a position, so
 * that inserted and deleted rows cause no item to be skipped or repeated.
 *
 * @param read Gets the items from behind a key on, in order; undefined is the beginning.
 * @throws CatalogError InvalidInput for a token of another list.
 */
export async function readPage<Item, Key>(
  list: List<Key>,
  request: PageRequest,
  read: (after: Key | undefined, limit: number) => Promise<Item[]>,
  keyOf: (item: Item) => Key,
): Promise<{ readonly items: Item[]; readonly page_token?: string }> {
  const readFrom = async (after: Key | undefined, limit: number) => {
    const found = await read(after, limit + 1);
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
export async function readScannedPage<Item, Key>(
  list: List<Key>,
  request: PageRequest,
  read: (after: Key | undefined, limit: number) => Promise<Part<Item, Key>>,
  keyOf: (item: Item) => Key,
  most = pageSizeMax,
): Promise<{ readonly items: Item[]; readonly page_token?: string }> {
  const limit = Math.min(request.limit ?? most, most);
  // An empty token is the beginning: the protocol lets it stand for "no more" in answers.
  const after = request.page_token ? readToken(list, request.page_token) : undefined;
  const asked = Math.min(limit, most * readAtFirst);
  let { items, next } = fitting(await read(after, asked), pageLengthMax, keyOf);
  const mayHaveMore = next !== undefined && items.length === asked && limit > asked;
  const left = mayHaveMore ? Math.min(limit - asked, roomFor(items)) : 0;
  if (next !== undefined && left > 0) {
    const rest = fitting(await read(next, left), pageLengthMax - lengthOf(items), keyOf);
    items = [...items, ...rest.items];
    next = rest.next;
  }
  if (next === undefined) return { items };
  return { items, page_token: Buffer.from(JSON.stringify([list.name, next])).toString("base64url") };
}

/** Some of a list's items, and where what follows them begins; undefined where nothing does. */
interface Part<Item, Key> {
  readonly items: Item[];
  readonly next: Key | undefined;
}

/** As much of a part as has so many characters, and one item of it in any case. */
function fitting<Item, Key>(
  { items, next }: Part<Item, Key>,
  lengthMax: number,
  keyOf: (item: Item) => Key,
): Part<Item, Key> {
  // Between the brackets, without the commas. Most pages fit as a whole.
  if (lengthOf(items) - items.length - 1 <= lengthMax) return { items, next };
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

function readToken<Key>({ name, key }: List<Key>, token: string): Key {
  try {
    return z.tuple([z.literal(name), key]).parse(JSON.parse(Buffer.from(token, "base64url").toString("utf8")))[1];
  } catch {
    throw new CatalogError("InvalidInput", "page_token: is not one that this list gave out");
  }
}
