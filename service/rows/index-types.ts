/** The types of indices that CreateTableIndex builds. Scalar ones are also those of CreateTableScalarIndex. */
export const scalarTypes = ["BTREE", "BITMAP", "LABEL_LIST", "FTS", "INVERTED", "FM"];
export const vectorTypes = ["IVF_FLAT", "IVF_PQ", "IVF_RQ", "IVF_HNSW_PQ", "IVF_HNSW_SQ"];
