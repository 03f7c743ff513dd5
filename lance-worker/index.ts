/** The part of the worker that the catalog imports: its client, and Arrow's format as bytes. Nothing here loads the Lance library. */
export { rowsAsStream } from "./arrow/arrow-rows.ts";
export { toLanceType } from "./arrow/arrow-schema.ts";
export { plainZone } from "./arrow/arrow-type.ts";
export { ByteReader } from "./arrow/message-stream.ts";
export { columnsAsStream, schemaWith } from "./arrow/schema-stream.ts";
export { splitStream } from "./arrow/split-stream.ts";
export { ChildEnded, type ChildOptions, createChild, type RowsChild } from "./client/child-process.ts";
export { LibraryError, readBody, readJson, rowsOf } from "./client/child-response.ts";
export {
  type Attempt,
  type CrashIsolation,
  createCrashIsolation,
  type Deadlines,
  type WatchedChild,
} from "./client/crash-isolation.ts";
export { problemOfValues } from "./computed-column.ts";
export { scalarTypes } from "./create-index.ts";
export { findField, fold, namesOf, pathOf } from "./field-path.ts";
export { lanceLibrary } from "./library-name.ts";
export { type Expression, literal, quotedName, toExpression } from "./sql-text.ts";
export * from "./wire.ts";
