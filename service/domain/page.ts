import { CatalogError, jsonOrUndefined } from "@tiltyard/protocol";
import { z } from "zod";

/** The default maximum number of items of a page. */
const pageSizeMax = 1000;
/** The maximum length of the items of a page as JSON. A page contains at least one item. */
const pageLengthMax = 1024 * 1024;
/** The fraction of a page that is read first. The size of these items determines how many more fit into the page. */
const readAtFirst = 1 / 10;

/** A paginated list. Its tokens contain its name, so that other lists reject them. */
export interface List<Key> {
  readonly name: string;
  readonly key: z.ZodType<Key>;
  /** Accepts a key as a token too, because LanceDB's client sends the name of a table. */
  readonly takesKeys?: boolean;
  /** The maximum number of items of a page; lower for items that may be large. */
  readonly most?: number;
  /** The number of items that are read at once, for items that may be large. Small ones may precede them. */
  readonly atOnce?: number;
}

/** A text in a key. Texts that no database can store are rejected. */
export const keyText = z.string().refine((text) => text.isWellFormed() && !text.includes("\0"));

export interface PageRequest {
  readonly page_token?: string | undefined;
  readonly limit?: number | undefined;
}

interface Page<Item> {
  readonly items: readonly Item[];
  readonly page_token?: string;
}

/**
 * Reads one page of a list. Its token contains the key of the last item instead of a position, so that insertions and
 * deletions cause no item to be skipped or repeated.
 *
 * @param read Returns the items that follow a key, in order; from the beginning if it is undefined.
 * @param keyOf Returns the key of an item, by default the part of it that the schema of keys describes.
 * @throws CatalogError InvalidInput for a token of another list.
 */
export async function readPage<Item, Key>(
  list: List<Key>,
  request: PageRequest,
  read: (after: Key | undefined, limit: number) => Promise<readonly Item[]>,
  keyOf: (item: Item) => Key = (item) => list.key.parse(item),
): Promise<Page<Item>> {
  const readFrom = async (after: Key | undefined, limit: number) => {
    const found = await read(after, limit + 1);
    const items = found.slice(0, limit);
    const last = items.at(-1);
    return { items, next: found.length > limit && last !== undefined ? keyOf(last) : undefined };
  };
  return readScannedPage(list, request, readFrom, keyOf);
}

/**
 * Reads one page of a list that is scanned in parts, like `readPage`. `read` itself returns the start of the next page,
 * and a page that is not the last one may be empty.
 */
export async function readScannedPage<Item, Key>(
  list: List<Key>,
  request: PageRequest,
  read: (after: Key | undefined, limit: number) => Promise<Part<Item, Key>>,
  keyOf: (item: Item) => Key,
): Promise<Page<Item>> {
  const { most = pageSizeMax, atOnce = most } = list;
  const limit = Math.min(request.limit ?? most, most);
  // An empty token stands for the beginning, because the protocol lets it stand for "no more" in responses.
  let after = request.page_token ? readToken(list, request.page_token) : undefined;
  const items: Item[] = [];
  // The length excludes the brackets and the commas.
  let [length, longest] = [0, 1];
  let left = Math.min(limit, most * readAtFirst, atOnce);
  do {
    const part = await read(after, left);
    for (const item of part.items) {
      const itemLength = JSON.stringify(item).length;
      const before = items.at(-1);
      if (before !== undefined && length + itemLength > pageLengthMax) return pageOf(list, items, keyOf(before));
      items.push(item);
      [length, longest] = [length + itemLength, Math.max(longest, itemLength)];
    }
    after = part.next;
    if (after === undefined || part.items.length < left) break;
    // Further items may be as long as the longest one.
    left = Math.min(limit - items.length, Math.floor((pageLengthMax - length) / longest), atOnce);
  } while (left > 0);
  return pageOf(list, items, after);
}

/** Some items of a list with the key that the next page follows; undefined for the last page. */
interface Part<Item, Key> {
  readonly items: readonly Item[];
  readonly next: Key | undefined;
}

function pageOf<Item, Key>({ name }: List<Key>, items: readonly Item[], next: Key | undefined): Page<Item> {
  if (next === undefined) return { items };
  return { items, page_token: Buffer.from(JSON.stringify([name, next])).toString("base64url") };
}

function readToken<Key>({ name, key, takesKeys = false }: List<Key>, token: string): Key {
  const decoded = jsonOrUndefined(Buffer.from(token, "base64url").toString("utf8"));
  const own = z.tuple([z.literal(name), key]).safeParse(decoded);
  if (own.success) return own.data[1];
  const given = key.safeParse(token);
  if (takesKeys && !Array.isArray(decoded) && given.success) return given.data;
  throw new CatalogError("InvalidInput", "page_token: is not a token of this list");
}
