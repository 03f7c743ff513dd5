import { z } from "zod";
import { characters, sqlExpression, text } from "../bounds.ts";
import { defineContract, onPath } from "../contract.ts";
import { context, count, datasetReadErrors, fieldPath, queryBoolean, queryInteger, queryList } from "../fields.ts";

/** The limits of the list of the first rows of a table. */
export const shown = {
  rows: 100,
  columns: 64,
  /** The characters of a text. */
  characters: 300,
  /** The characters at the end of a traceback. */
  traceCharacters: 1_200,
  /** The items of a list. */
  items: 8,
  /** The limits of a whole value. */
  whole: { characters: 100_000, items: 4_096 },
  /** The bytes of binary values other than images. */
  bytes: 16,
  /** The bytes of an image. Larger images are omitted. */
  imageBytes: 140 * 1024,
  /** The bytes of all values of a response as JSON. The rows and images beyond this limit are omitted. */
  answerBytes: 192 * 1024,
} as const;

const Value = z
  .object({
    text: z.string().describe(`The value as text, with at most ${shown.characters} characters.`),
    length: count.optional().describe("The length of the whole value; absent for a text that is not truncated."),
    unit: z.enum(["characters", "bytes", "items"]).optional().describe("The unit of `length`."),
    image: z
      .object({ media_type: z.enum(["image/png", "image/jpeg"]), base64: z.string() })
      .optional()
      .describe(
        `An image of at most ${shown.imageBytes} bytes; absent if it exceeds the size of the response. A request for its row and column alone returns it.`,
      ),
  })
  .meta({ id: "ShownValue" });
export type ShownValue = z.infer<typeof Value>;

const Column = z
  .object({
    name: z.string(),
    type: z.string().describe("The type, such as `timestamp[us, tz=UTC]` or `fixed_size_list<float32, 768>`."),
    is_shown: z.boolean().describe("False if the values have no text. They are null in this response."),
  })
  .meta({ id: "ShownColumn" });

export const listTableRows = defineContract({
  operationId: "ListTableRows",
  summary: "List rows of a table for people, with truncated values",
  methods: ["GET"],
  path: "/management/v1/table/{id}/row/list",
  query: z.object({
    limit: queryInteger(1).optional().describe(`The maximum number of rows: 20 when absent, ${shown.rows} at most.`),
    offset: queryInteger(0).optional().describe("The number of rows to skip."),
    branch: text(characters.name).optional().describe("The branch to read; main when absent."),
    version: queryInteger(0).optional().describe("The version to read; the latest when absent."),
    filter: sqlExpression().min(1).optional().describe("A condition on rows in SQL, such as `year > 1990`."),
    sort: text(characters.path).min(1).optional().describe("The name of a top-level column that orders the rows."),
    descending: queryBoolean.optional().describe("Orders rows with the greatest values first."),
    like: text(characters.path)
      .min(1)
      .optional()
      .describe("The name of a column of vectors. Rows are ordered by their distance to the vector of `like_row`."),
    like_row: queryInteger(0)
      .optional()
      .describe("The number of the example among the rows that `filter` and `sort` select; 0 when absent."),
    columns: queryList(fieldPath, shown.columns)
      .optional()
      .describe(`The names of top-level columns; the first ${shown.columns} when absent.`),
    whole: queryBoolean
      .optional()
      .describe(
        `Truncates values only after ${shown.whole.characters} characters or ${shown.whole.items} items, and returns one row.`,
      ),
  }),
  response: z
    .object({
      context,
      version: count,
      columns: z.array(Column).describe("The columns of the rows, in their order."),
      columns_in_all: count.describe("The number of the table's columns."),
      rows: z.array(z.array(Value.nullable())).describe("The values of a row, in the order of the columns."),
      distances: z
        .array(z.number())
        .optional()
        .describe("The distances of the rows to the example; present only with `like`."),
      next_offset: count
        .optional()
        .describe(`The offset of the first omitted row, if the rows exceed ${shown.answerBytes} bytes.`),
    })
    .meta({ id: "ListTableRowsResponse" }),
  errors: datasetReadErrors,
  access: onPath("reader"),
  onRows: true,
});
