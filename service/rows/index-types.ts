import { CatalogError } from "@tiltyard/protocol";

/** The types of indices that CreateTableIndex builds. Scalar ones are also those of CreateTableScalarIndex. */
export const scalarTypes = ["BTREE", "BITMAP", "LABEL_LIST", "FTS", "INVERTED", "FM"];
export const vectorTypes = ["IVF_FLAT", "IVF_PQ", "IVF_RQ", "IVF_HNSW_PQ", "IVF_HNSW_SQ"];

const distances = ["l2", "cosine", "dot", "hamming"] as const;

/** Returns a distance as the library spells it. @throws CatalogError InvalidInput */
export function distanceOf(name: string): (typeof distances)[number] {
  const found = distances.find((each) => each === name.toLowerCase());
  if (found !== undefined) return found;
  throw new CatalogError("InvalidInput", `distance_type: must be one of ${distances.join(", ")}`);
}
