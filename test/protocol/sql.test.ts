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
import { z } from "zod";

const all: readonly AnyContract[] = [contracts, managementContracts, remoteContracts].flatMap((each) =>
  Object.values<AnyContract>(each),
);

/** The names of texts that Lance does not parse as SQL. A field with a new name is an sqlExpression, or is added here. */
const otherText = new Set(
  `api_key api_key_id arrow_type auth_token base_tokenizer behavior branch channels claim client_secret cluster column column_name
  column_names columns columns.* context.* cron data digest distance_type e_tag entrypoint env.* error_handling.* error_message error_policy
  error_type field_metadata.* from_branch id image index_name index_type initialization.* input_bindings input_columns input_schema job_id
  key kind lance_tokenizer language like like_row limit location log_tail manifest manifest_checksum manifest_digest manifest_path
  metadata.* metric_type mode name namespace namespace_path new_id new_namespace new_namespace_id new_table_name object_id offset on
  operator output_name output_schema packages page_token parameter partition_by partition_by_indexed_column path platform.* principal
  priority properties properties.* python_version reason rename result_field signature since_millis sort source_query status
  storage_options storage_options.* struct_field table tag terms time_zone timeout type udf udf_backend udf_name udf_version udtf udtf_name udtf_sha
  udtf_version until_millis value variable vector_column version`.split(/\s+/),
);
/** Paths with names that are an expression elsewhere: words of a full-text query, and a filter that the catalog evaluates. */
const otherPaths =
  /(full_text_query|string_query|multi_match|match|phrase|boost)\.query$|jobs\/query_events\.filter$|custom_stop_words$/;

interface Found {
  readonly path: string;
  readonly isSql: boolean;
}

/** The types without texts of any content. */
const leaves = new Set([
  "number",
  "int",
  "bigint",
  "boolean",
  "enum",
  "literal",
  "null",
  "undefined",
  "never",
  "transform",
]);

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
      return [...inside(def.in), ...inside(def.out)];
    case "optional":
    case "nullable":
    case "default":
      return inside(def.innerType);
    case "string":
      return [{ path, isSql: sqlExpressions.get(schema as z.ZodString) !== undefined }];
    case "unknown":
    case "any":
      return [{ path, isSql: false }];
    case "lazy":
      return inside(def.getter());
    case "tuple":
      return def.items.flatMap((item) => inside(item));
    default:
      // Another type may contain texts, so this code must learn it first.
      if (!leaves.has(def.type)) throw new Error(`${path}: texts in the type ${def.type} are not searched`);
      return [];
  }
}

const stringsIn = (contracts: readonly Pick<AnyContract, "query" | "body" | "path">[]) =>
  contracts.flatMap(({ query, body, path }) => [query, body].flatMap((schema) => stringsOf(schema, path)));
const strings = stringsIn(all);

describe("every SQL field of every contract", () => {
  const nameOf = (path: string) => /[^./]+(\.\*)?$/.exec(path)?.[0] ?? "";
  const unbounded = (found: readonly Found[]) =>
    found
      .filter(({ path, isSql }) => !isSql && !otherText.has(nameOf(path)) && !otherPaths.test(path))
      .map(({ path }) => path);

  test("is bounded: a text is an sqlExpression, or is listed here as other text", () => {
    expect(unbounded(strings)).toEqual([]);
  });

  test.each<[string, z.ZodType]>([
    ["text", z.string()],
    ["short text", z.string().max(100)],
    ["optional text", z.string().nullish()],
    ["list", z.array(z.string())],
    ["map", z.record(z.string(), z.string())],
    ["object", z.object({ having: z.string() })],
    ["union", z.union([z.number(), z.string()])],
    ["lazy text", z.lazy(() => z.string())],
    ["tuple", z.tuple([z.string(), z.string()])],
    ["converted text", z.preprocess((value) => value, z.string())],
    ["trimmed text", z.string().transform((text) => text.trim())],
  ])("is noticed when it is added as a %s", (_, having) => {
    const [contract] = all.filter(({ path }) => path === "/v1/table/{id}/query");
    for (const place of ["query", "body"] as const) {
      const extended = { ...(contract ?? all[0]), path: "/v1/new", query: z.object({}), body: z.object({}) };
      expect(unbounded(stringsIn([{ ...extended, [place]: z.object({ having }) }]))).not.toEqual([]);
    }
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
    ["more closed than opened", "(n = 1)) or (n = 2", "closes a parenthesis or bracket that is not open"],
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

/** The maximum length of an expression. */
const lengthMax = 256 * 1024;

test.each([
  ["types", (length: number) => `arrow_cast(n, '${"FixedSize".repeat(length / 9)}')`],
  ["spaces in a type", (length: number) => `arrow_cast(n, 'FixedSizeList${" ".repeat(length)}')`],
  ["quotes", (length: number) => `n = '${"''".repeat(length / 2)}'`],
  ["dollars", (length: number) => `n = ${"$a".repeat(length / 2)}`],
  ["signs", (length: number) => "<=".repeat(length / 2)],
  ["a comment without an end", (length: number) => `n = 1 /${"*".repeat(length)}`],
  ["a pattern", (length: number) => `regexp_count(a, '${"\\x".repeat(length / 2)}*')`],
])("a long text of %s is checked within a second", (_, textOf) => {
  const startedMs = performance.now();
  problemOfSql(textOf(lengthMax));
  expect(performance.now() - startedMs).toBeLessThan(1_000);
});

describe("a function whose cost is a product of lengths", () => {
  test.each([
    ...[
      "levenshtein(a, b) < 3",
      "levenshtein(repeat(a, 60000), repeat(a, 59999)) >= 0",
      "levenshtein(left(a, 257), b) < 3",
    ],
    ...[
      "levenshtein(left(a, -1), b) < 3",
      "levenshtein(left(a, 9) || c, b) < 3",
      "levenshtein(upper(left(a, 9)), b) < 3",
    ],
    ...["strpos(a, b) > 0", "INSTR(a, b) > 0", `strpos(a, '${"x".repeat(257)}') > 0`, "contains_tokens(a, b)"],
    ...[
      "btrim(a, b) = ''",
      "ltrim(a, b || 'x') = ''",
      "rtrim(a, b) = ''",
      "trim(a, b) = ''",
      "trim(both b from a) = ''",
    ],
    ...["array_has_all(a, b)", "list_has_all(range(0, 9), range(0, 9))", "`levenshtein`(a, b) < 3"],
    ...["array_has_any(a, b)", "list_has_any(a, b)", "arrays_overlap(a, b)", "regexp_like(a, b)", "regexp_match(a, b)"],
    ...["array_to_string(a, b) = ''", "array_join(array_repeat(a, 9), a) = ''", "list_to_string(a, b) = ''"],
    ...["replace(a, 'x', a) = ''", "replace(a, 'x', b || 'y') = ''", "regexp_replace(a, 'x', a, 'g') = ''"],
    ...[
      "regexp_count(a, '.*[^A-Z]|[A-Z]') > 0",
      "regexp_replace(a, 'x*y', 'z', 'g') = ''",
      "regexp_instr(a, b, 1, 9) > 0",
    ],
  ])("is refused in %s", (sql) => {
    expect(problemOfSql(sql)).toMatch(/its cost is the|its result is the product|write btrim/);
  });

  const spaces = Array.from({ length: 0x1_0000 }, (_, code) => String.fromCharCode(code));
  test.each(
    spaces.filter((each) => /\p{White_Space}/u.test(each)).map((each) => [each.charCodeAt(0).toString(16), each]),
  )("is refused with the white space U+%s before its arguments", (_, space) => {
    expect(problemOfSql(`levenshtein${space}(a, b) < 3`)).toContain("its cost is the");
    expect(problemOfSql(`repeat${space}(${space}a,${space}1000000000) = ''`)).toContain("times as long");
    expect(problemOfSql(`trim(both${space}a${space}from${space}b) = ''`)).toContain("write btrim");
  });

  test.each(["größe = 1", "名前 = 'x'", "𐐀b = 2", "a$1 = 3", "#temp = 4"])("accepts the name in %s", (sql) => {
    expect(problemOfSql(sql)).toBeUndefined();
  });

  test.each([
    ...["a LIKE b", "a ILIKE concat('%', b)", "a NOT LIKE left(b, 9)", "a SIMILAR TO b", "a RLIKE b", "a ~ b"],
    ...["a !~* b", `a ILIKE '%${"a".repeat(255)}%'`, `a LIKE '${"_%".repeat(200)}'`, "a LIKE ('x')"],
  ])("is refused in the pattern of %s", (sql) => {
    expect(problemOfSql(sql)).toContain("its pattern must be a text of up to 256 characters");
  });

  test.each([...["json_extract(a, '$.**.**') = '1'", "json_exists(a, b)", "json_extract(a, '$.**' || b) = '1'"]])(
    "is refused with the path of %s",
    (sql) => {
      expect(problemOfSql(sql)).toContain("its path must be a text with at most one **");
    },
  );

  test.each([
    ...["levenshtein(a, 'query') < 3", "levenshtein(left(a, 256), b) < 3", "strpos(a, 'x') > 0", "instr(a, 'x') > 0"],
    ...["trim(a) = ''", "trim(upper(a)) = ''", "btrim(a, ' .') = ''", "contains_tokens(a, 'two words')"],
    ...["a LIKE '%x%'", "a NOT ILIKE 'x_'", "a SIMILAR TO '(x|y)*'", "a ~ '^x'", "a LIKE '100\\%' ESCAPE '\\'"],
    ...["replace(a, b, 'x') = ''", "replace(left(a, 9), 'x', b) = ''", "array_to_string(a, ', ') = ''"],
    ...["json_extract(a, '$.x.**') = '1'", "json_get(a, b) = '1'", "array_has_any(a, ['x'])"],
    ...["array_has_all(a, ['x', 'y'])", "array_has_all(a, make_array('x', 'y'))", "array_has(a, 'x')"],
    ...[
      "regexp_replace(a, '(x|y)*', 'z') = ''",
      "regexp_replace(a, '\\s+', ' ', 'g') = ''",
      "regexp_count(a, '[0-9]') > 2",
    ],
    ...["regexp_count(left(a, 100), '.*[^A-Z]|[A-Z]') > 0", "regexp_like(a, '(x|y)*')", "left(a, -1) = 'x'"],
  ])("is accepted in %s", (sql) => {
    expect(problemOfSql(sql)).toBeUndefined();
  });
});
