/** Returns the common options of chart releases. */
export function release(
  { chart, repository }: { readonly chart: string; readonly repository: string },
  version: string,
) {
  return { chart, version, repositoryOpts: { repo: repository }, atomic: true, timeout: 600 };
}
