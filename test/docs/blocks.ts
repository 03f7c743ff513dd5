/** Returns the fenced code blocks of a Markdown page in order, without their indentation. */
export function blocksOf(page: string): readonly { readonly language: string; readonly text: string }[] {
  const blocks = page.matchAll(/^( *)```(\w*)[^\n]*\n(.*?)^\1```$/gms);
  return [...blocks].map(([, indent = "", language = "", text = ""]) => ({
    language,
    text: text.replaceAll(new RegExp(`^${indent}`, "gm"), ""),
  }));
}
