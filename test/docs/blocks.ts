/** Returns the fenced code blocks of a Markdown page in order. */
export function blocksOf(page: string): readonly { readonly language: string; readonly text: string }[] {
  return [...page.matchAll(/^```(\w*)[^\n]*\n(.*?)^```$/gms)].map(([, language = "", text = ""]) => ({
    language,
    text,
  }));
}
