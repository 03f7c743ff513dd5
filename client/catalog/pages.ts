/** A page of a list, with the token of the next one. */
export interface Page {
  readonly page_token?: string | undefined;
}

/**
 * Iterates over all pages of a list operation. The last page has no token, or an empty one.
 *
 * ```ts
 * for await (const { tables } of pages(catalog.listTables, { id: ["prod"] })) console.log(tables);
 * ```
 */
export async function* pages<Request extends object, Answer extends Page>(
  list: (request: Request & Page) => Promise<Answer>,
  request: Request,
): AsyncGenerator<Answer> {
  let token: string | undefined;
  do {
    const answer = await list({ ...request, ...(token && { page_token: token }) });
    yield answer;
    token = answer.page_token;
  } while (token);
}
