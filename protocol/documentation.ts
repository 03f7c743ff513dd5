/** The titles of the documentation's pages that help texts and errors name. */
export const documentationTitles = {
  catalog: "Operating the catalog",
  existing: "A stack on an existing cluster",
  jobs: "Jobs: columns that are filled on Ray",
  rayCluster: "Parameters of a Ray cluster",
  settings: "Settings of the catalog",
  stack: "Settings of a stack",
  tables: "Tables",
} as const;

/** Returns the words that name a page. They contain its title, because installed packages contain no files of `docs/`. */
export function documentationPage(page: keyof typeof documentationTitles): string {
  return `"${documentationTitles[page]}" in Tiltyard's documentation`;
}
