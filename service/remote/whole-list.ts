/** As much as one answer may have, where a client reads no token. */
const pagesMax = 50;

/** Reads the pages of a list one after the other. */
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
