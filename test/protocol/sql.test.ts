/** SQL expressions are checked before Lance parses them, in every field of every contract. */
import {
  type AnyContract,
  contracts,
  managementContracts,
  problemOfSql,
  remoteContracts,
  sqlBounds,
  sqlExpressions,
} from "@tiltyard/protocol";
import { describe, expect, test } from "vitest";
import type { z } from "zod";

const all: readonly AnyContract[] = [contracts, managementContracts, remoteContracts].flatMap((each) =>
  Object.values<AnyContract>(each),
);

/** Texts that are as long as an expression or have a similar name, but that Lance does not parse as SQL. */
const otherText = new Set([
  ...["context", "properties", "metadata", "field_metadata"].map((map) => `${map}.*`),
  // Identifiers have separate bounds.
  ...["id", "new_id", "namespace", "new_namespace", "new_namespace_id"],
  ...["api_key", "auth_token", "page_token", "value", "storage_options.*"],
  // These fields contain the words of a full-text query.
  ...["terms", "string_query.query", "full_text_query.query", "multi_match.query"],
  // These fields contain documents for the compute side.
  ...["udtf", "udf", "manifest", "source_query", "output_schema", "client_secret"],
  // This field contains a column and a value that the catalog itself compares.
  "jobs/query_events.filter",
]);
const lengthOfSql = 200 * 1024;
const namesOfSql = /sql|filter|filt$|predicate|expression|where|condition|computed|aliases/i;

interface Found {
  readonly path: string;
  readonly isSql: boolean;
  readonly lengthMax: number;
}

function stringsOf(schema: z.core.$ZodType, path: string, seen: ReadonlySet<z.core.$ZodType> = new Set()): Found[] {
  if (seen.has(schema)) return [];
  const inside = (inner: z.core.$ZodType, at = path) => stringsOf(inner, at, new Set([...seen, schema]));
  const { def } = (schema as z.core.$ZodTypes)._zod;
  switch (def.type) {
    case "object":
      return Object.entries(def.shape).flatMap(([name, inner]) => inside(inner, `${path}.${name}`));
    case "array":
      return inside(def.element);
    case "record":
      return inside(def.valueType, `${path}.*`);
    case "union":
      return def.options.flatMap((option) => inside(option));
    case "pipe":
      return inside(def.in);
    case "optional":
    case "nullable":
    case "default":
      return inside(def.innerType);
    case "string": {
      const lengthMax = (schema as z.ZodString).maxLength ?? Number.POSITIVE_INFINITY;
      return [{ path, lengthMax, isSql: sqlExpressions.get(schema as z.ZodString) !== undefined }];
    }
    default:
      return [];
  }
}

const strings = all.flatMap((contract) =>
  [contract.query, contract.body].flatMap((schema) => stringsOf(schema, contract.path)),
);

describe("every SQL field of every contract", () => {
  const isOther = ({ path }: Found) =>
    [...otherText].some((each) => path.endsWith(`.${each}`) || path.endsWith(`/${each}`));
  const mayBeSql = ({ path, lengthMax }: Found) =>
    lengthMax > lengthOfSql || namesOfSql.test(path.slice(path.lastIndexOf("/")));

  test("is bounded: a field that can hold an expression is an sqlExpression, or is listed here as other text", () => {
    expect(strings.filter((each) => mayBeSql(each) && !each.isSql && !isOther(each))).toEqual([]);
  });

  test("is found where Lance reads SQL today", () => {
    expect(strings.filter(({ isSql }) => isSql).map(({ path }) => path)).toEqual(
      expect.arrayContaining([
        "/v1/table/{id}/merge_insert.when_matched_update_all_filt",
        "/v1/table/{id}/merge_insert.when_not_matched_by_source_delete_filt",
        "/v1/table/{id}/update.predicate",
        "/v1/table/{id}/update.updates",
        "/v1/table/{id}/delete.predicate",
        "/v1/table/{id}/query.filter",
        "/v1/table/{id}/query.columns.column_aliases.*",
        "/v1/table/{id}/count_rows.predicate",
        "/v1/table/{id}/explain_plan.query.filter",
        "/v1/table/{id}/analyze_plan.filter",
        "/v1/table/{id}/add_columns.new_columns.expression",
        "/v1/table/{id}/add_columns.new_columns.computed",
        "/v1/table/{id}/backfill_column.where",
        "/v1/table/{id}/query/.filter",
        "/v1/table/{id}/query/.columns.*",
        "/v1/table/{id}/explain_plan/.query.columns.*",
        "/v1/table/{id}/update/.updates",
      ]),
    );
  });
});

describe("an expression is allowed", () => {
  test.each([
    ["with 1,000 values in a list", `id IN (${Array.from({ length: 1_000 }, (_, id) => `'row-${id}'`).join(", ")})`],
    ["with 1,000 alternatives", Array.from({ length: 1_000 }, (_, id) => `id = ${id}`).join(" OR ")],
    ["with 500 pairs", Array.from({ length: 500 }, (_, id) => `(id = ${id} AND n < ${id})`).join(" OR ")],
    ["with CASE", "CASE WHEN n > 1 THEN 'many' WHEN n = 1 THEN 'one' ELSE 'none' END"],
    ["that pads", "lpad(cast(id AS string), 10, '0')"],
    ["that makes a vector", "array_repeat(0.0, 1536)"],
    ["that counts", "range(-5, 5)"],
    ["that cleans text", "replace(replace(replace(title, 'a', ''), ',', ' '), '\"', '''')"],
    ["with what looks like SQL in text", `title = '${"(".repeat(100)} repeat(''x'', 99999999)'`],
  ])("%s", (_, sql) => {
    expect(problemOfSql(sql)).toBeUndefined();
  });
});

describe("an expression is refused", () => {
  const chained = `more than ${sqlBounds.chain} operators in a chain`;
  const longer = `more than ${sqlBounds.growth} times as long`;
  const mustBeNumber = "must be a number";
  test.each([
    ["n = 1+1+1+...", `n = ${Array(1_000).fill("1").join("+")}`, chained],
    ["a || b || ...", Array(1_000).fill("title").join("||"), chained],
    ["n::int::int...", `n${"::int".repeat(1_000)}`, chained],
    ["n IS NULL IS NULL ...", `n${" IS NULL".repeat(1_000)}`, chained],
    ["f.f.f...", `f${".f".repeat(1_000)}`, chained],
    ["f[1][1]...", `f${"[1]".repeat(1_000)}`, chained],
    ["5,000 alternatives", Array(5_000).fill("n=1").join(" OR "), "operators"],
    ["((((...", `${"(".repeat(40)}n${")".repeat(40)}`, "nests deeper"],
    ["cast(cast(...", `${"cast(".repeat(48)}n${" as int)".repeat(48)}`, "nests deeper"],
    ["CASE in CASE", `${"CASE WHEN n=1 THEN ".repeat(40)}1${" END".repeat(40)}`, "nests deeper"],
    ["repeat", "repeat('x', 1000000000)", longer],
    ["a quoted name", "`repeat`('x', 1000000000)", longer],
    ["a comment inside", "rpad/* */('x', -- 5\n1000000000)", longer],
    ["behind a dollar-quoted string", "$a$'$a$ = repeat('x', 1000000000)", longer],
    ["repeat in repeat", "repeat(repeat('x', 1000), 1000)", longer],
    ["a length that is computed", "lpad('x', 1000 * 1000 * 1000)", mustBeNumber],
    ["a length that is a column", "range(0, n)", mustBeNumber],
    ["array_repeat", "array_repeat(1, 1e9)", longer],
    ["replace in replace", `${"replace(".repeat(6)}'a'${",'a','aaaaaaaaaa')".repeat(6)}`, longer],
    ["encode in encode", `${"encode(".repeat(30)}'a'${",'hex')".repeat(30)}`, longer],
    ["a type of any size", "arrow_cast(n, 'FixedSizeList(1000000000, Int64)')", longer],
    ["a list without an end", `n IN (${Array(70_000).fill("1").join()})`, "tokens"],
  ])("%s", (_, sql, problem) => {
    expect(problemOfSql(sql)).toContain(problem);
  });
});
