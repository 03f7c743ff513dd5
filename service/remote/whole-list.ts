/** The maximum number of pages in one response to clients that read no page tokens. */
const pagesMax = 50;

/** Reads all pages of a list in sequence. */
export async function readWhole<Page extends { readonly page_token?: string | undefined }>(
  read: (page_token: string | undefined) => Promise<Page>,
): Promise<Page[]> {
  const pages: Page[] = [];
  let token: string | undefined;
  do {
    const page = await read(token);
    pages.push(page);
    token = page.page_token;
  } while (token !== undefined && pages.length < pagesMax);
  return pages;
}
