interface Page {
  readonly page_token?: string | undefined;
}

/**
 * Iterates over all pages of a list operation.
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
    const answer = await list({ ...request, ...(token !== undefined && { page_token: token }) });
    yield answer;
    token = answer.page_token;
  } while (token !== undefined);
}
