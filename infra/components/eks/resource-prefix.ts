/**
 * Returns the prefix of the names of buckets and repositories. The name of an existing cluster may contain capitals,
 * underscores and several dashes in a row, which those names must not contain.
 */
export function resourcePrefix({ clusterName }: { readonly clusterName: string }): string {
  return clusterName.toLowerCase().replaceAll(/[-_]+/g, "-").replace(/-$/, "");
}
