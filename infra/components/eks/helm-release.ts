/** What all releases of charts have in common. */
export function release(
  { chart, repository }: { readonly chart: string; readonly repository: string },
  version: string,
) {
  return { chart, version, repositoryOpts: { repo: repository }, atomic: true, timeout: 600 };
}
