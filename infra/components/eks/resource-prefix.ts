/**
 * How the names of buckets and repositories begin. A cluster that was made elsewhere may have capitals and underscores in
 * its name, which those refuse.
 */
export function resourcePrefix({ clusterName }: { readonly clusterName: string }): string {
  return clusterName
    .toLowerCase()
    .replaceAll(/-*_[-_]*/g, "-")
    .replace(/-+$/, "");
}
