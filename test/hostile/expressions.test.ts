/** Random SQL over the functions of DataFusion never ends the catalog, and every refusal says why. */
import { tableFromArrays, tableToIPC } from "apache-arrow";
import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startWatchedService, type WatchedService } from "./service.ts";

/** More runs and another seed search further, for example TILTYARD_TEST_EXPRESSIONS=20000 TILTYARD_TEST_SEED=$RANDOM. */
const { TILTYARD_TEST_EXPRESSIONS: runs = "400", TILTYARD_TEST_SEED: seed = "1" } = process.env;

const functions = `
  abs acos acosh asin asinh atan atan2 atanh cbrt ceil cos cosh cot degrees exp factorial floor gcd isnan iszero lcm ln log log10
  log2 nanvl pi power pow radians random round signum sin sinh sqrt tan tanh trunc coalesce greatest ifnull least nullif nvl nvl2
  ascii bit_length btrim char_length character_length chr concat concat_ws contains ends_with find_in_set initcap instr left length
  levenshtein lower lpad ltrim octet_length overlay position repeat replace reverse right rpad rtrim split_part starts_with strpos
  substr substring substr_index to_hex translate trim upper uuid decode encode regexp_count regexp_instr regexp_like regexp_match
  regexp_replace current_date current_time date_bin date_format date_part date_trunc from_unixtime make_date now to_char to_date
  to_local_time to_timestamp to_timestamp_micros to_timestamp_millis to_timestamp_nanos to_timestamp_seconds to_unixtime
  array_any_value array_append array_concat array_contains array_dims array_distance array_distinct array_element array_empty
  array_except array_has array_has_all array_has_any array_intersect array_join array_length array_max array_min array_ndims
  array_pop_back array_pop_front array_position array_positions array_prepend array_remove array_remove_all array_remove_n
  array_repeat array_replace array_replace_all array_replace_n array_resize array_reverse array_slice array_sort array_to_string
  array_union cardinality flatten generate_series make_array range string_to_array named_struct struct get_field element_at map
  map_extract map_keys map_values digest md5 sha224 sha256 sha384 sha512 arrow_cast arrow_typeof version union_extract
  avg count max min sum median stddev array_agg row_number rank json_extract json_get json_exists regexp_like st_distance
`
  .trim()
  .split(/\s+/);
const types = [
  "int",
  "bigint",
  "double",
  "string",
  "boolean",
  "date",
  "timestamp",
  "decimal(38, 10)",
  "binary",
  "tinyint",
];
const operators = [
  "+",
  "-",
  "*",
  "/",
  "%",
  "||",
  "=",
  "<>",
  "<",
  ">=",
  "and",
  "or",
  "like",
  "ilike",
  "~",
  "&",
  "|",
  "^",
  "<<",
  ">>",
];

const leaf = fc.oneof(
  fc.constantFrom("id", "title", "price", "seen", "tags", "nested", "vector", "nested.a", "tags[1]", "missing"),
  fc.constantFrom(
    "0",
    "1",
    "-1",
    "2147483647",
    "9223372036854775807",
    "-9223372036854775808",
    "1e308",
    "0.1",
    "1e-300",
  ),
  fc.constantFrom("''", "'a'", "'%'", "'[('", "'(a+)+$'", "'2026-01-01'", "'ß🎬'", "'Utf8'", "'hour'", "X'00ff'"),
  fc.constantFrom(
    "null",
    "true",
    "false",
    "interval '1' month",
    "date '0001-01-01'",
    "timestamp '9999-12-31 23:59:59'",
    "[]",
    "{}",
  ),
);
const { expression } = fc.letrec<{ expression: string }>((tie) => {
  const inner = tie("expression");
  const args = fc.array(inner, { maxLength: 4 }).map((list) => list.join(", "));
  return {
    expression: fc.oneof(
      { maxDepth: 3, depthSize: "small" },
      { weight: 2, arbitrary: leaf },
      { weight: 4, arbitrary: fc.tuple(fc.constantFrom(...functions), args).map(([name, list]) => `${name}(${list})`) },
      {
        weight: 2,
        arbitrary: fc.tuple(inner, fc.constantFrom(...operators), inner).map(([a, sign, b]) => `(${a} ${sign} ${b})`),
      },
      { weight: 1, arbitrary: fc.tuple(inner, fc.constantFrom(...types)).map(([a, type]) => `cast(${a} as ${type})`) },
      {
        weight: 1,
        arbitrary: fc.tuple(inner, inner, inner).map(([a, b, c]) => `case when ${a} then ${b} else ${c} end`),
      },
      { weight: 1, arbitrary: fc.tuple(inner, args).map(([a, list]) => `${a} in (${list})`) },
      { weight: 1, arbitrary: fc.tuple(inner, inner, inner).map(([a, b, c]) => `${a} between ${b} and ${c}`) },
      { weight: 1, arbitrary: inner.map((a) => `not ${a} is null`) },
    ),
  };
});

/** The operations that evaluate an expression, with the body that carries it. */
const operations: Readonly<Record<string, (expression: string) => object>> = {
  count_rows: (predicate) => ({ predicate }),
  query: (filter) => ({ filter, k: 10, vector: {} }),
  explain_plan: (filter) => ({ query: { filter, k: 10, vector: { single_vector: [1, 0] } } }),
  update: (value) => ({ updates: [["title", value]] }),
  delete: (predicate) => ({ predicate: `(${predicate}) and false` }),
  add_columns: (value) => ({ new_columns: [{ name: "added", expression: value }] }),
};

const table = "ns$expressions";
let service: WatchedService;
const post = (path: string, body: string | Uint8Array) =>
  service.send({ method: "POST", path, body, headers: { "x-api-key": service.keys.admin } });

/** Replaces the table, which updates and added columns change. */
async function createTable(): Promise<void> {
  const rows = tableFromArrays({
    id: Int32Array.from([1, 2, 3]),
    title: ["Stalker", null, "🎬"],
    price: Float64Array.from([0.5, Number.NaN, Number.POSITIVE_INFINITY]),
    seen: [true, false, null],
  });
  const { status, text } = await post(
    `/v1/table/${encodeURIComponent(table)}/create?mode=overwrite`,
    tableToIPC(rows, "stream"),
  );
  if (status !== 200) throw new Error(`the table was not created: ${status} ${text}`);
}

beforeAll(async () => {
  service = await startWatchedService();
  await post("/v1/namespace/ns/create", "{}");
});
afterAll(() => service[Symbol.asyncDispose]());

test.each(Object.entries(operations))("%s evaluates random expressions or refuses them", async (name, bodyOf) => {
  await createTable();
  const property = fc.asyncProperty(expression, async (sql) => {
    const { status, text } = await post(`/v1/table/${encodeURIComponent(table)}/${name}`, JSON.stringify(bodyOf(sql)));
    expect([200, 400, 404, 406, 503], `${status} ${text.slice(0, 1000)}`).toContain(status);
    if (name === "add_columns" && status === 200) await createTable();
  });
  await fc.assert(property, { numRuns: Number(runs), seed: Number(seed), endOnFailure: true });
  expect((await service.send({ method: "GET", path: "/health/live" })).status).toBe(200);
});
