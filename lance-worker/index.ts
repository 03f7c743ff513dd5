/** The part of the worker that the catalog imports: the wire, and Arrow's format as bytes. Nothing here loads the Lance library. */
export { rowsAsStream } from "./arrow/arrow-rows.ts";
export { toLanceType } from "./arrow/arrow-schema.ts";
export { plainZone } from "./arrow/arrow-type.ts";
export { ByteReader } from "./arrow/message-stream.ts";
export { columnsAsStream, schemaWith } from "./arrow/schema-stream.ts";
export { splitStream } from "./arrow/split-stream.ts";
export { problemOfValues } from "./computed-column.ts";
export { scalarTypes } from "./create-index.ts";
export { lanceLibrary } from "./library-name.ts";
export { type Expression, literal, quotedName, toExpression } from "./sql-text.ts";
export * from "./wire.ts";
