import { type Page, pages } from "../catalog/pages.ts";

/**
 * Lists the items of all pages.
 *
 * @param limit The maximum number of items. A single page may have fewer although more follow.
 */
export async function listed<Request extends object, Answer extends Page, Item>(
  list: (request: Request & Page) => Promise<Answer>,
  request: Request,
  itemsOf: (page: Answer) => readonly Item[],
  limit = Number.POSITIVE_INFINITY,
): Promise<readonly Item[]> {
  const items: Item[] = [];
  for await (const page of pages(list, request)) {
    for (const item of itemsOf(page)) items.push(item);
    if (items.length >= limit) break;
  }
  return items.slice(0, limit);
}
