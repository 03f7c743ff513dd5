/** Tests that random SQL over the functions of DataFusion never crashes the catalog and that every rejection has a reason. */
import { tableFromArrays, tableToIPC } from "apache-arrow";
import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startWatchedService, type WatchedService } from "./service.ts";

/** The number of runs, the seed, and the duration of a search in seconds, which `npm run test:fuzz` sets. */
const {
  TILTYARD_TEST_EXPRESSIONS: runs = "400",
  TILTYARD_TEST_SEED: seed = "1",
  TILTYARD_TEST_FUZZ_SECONDS: fuzzSeconds = "0",
} = process.env;
/** The memory of the service, whose child process has the library. */
const residentMaxMiB = 400;

/**
 * The functions by the types of their arguments and their result: `n` number, `t` text, `b` boolean, `l` list of
 * numbers, `d` time.
 */
const functions: Readonly<Record<string, string>> = {
  "n>n": `abs acos acosh asin asinh atan atanh cbrt ceil cos cosh cot degrees exp factorial floor isnan ln log10 log2 radians round
    signum sin sinh sqrt tan tanh trunc`,
  "nn>n": "atan2 gcd lcm log nanvl power round trunc nullif coalesce greatest least",
  "t>n": "ascii bit_length char_length length octet_length",
  "tt>n": "find_in_set instr levenshtein regexp_count strpos",
  "l>n": "array_length array_max array_min array_ndims cardinality",
  "ln>n": "array_element array_position",
  "ll>n": "array_distance",
  "d>n": "to_unixtime",
  ">n": "pi random",
  "t>t": "btrim initcap lower ltrim md5 reverse rtrim sha256 trim upper",
  "tt>t": "concat ltrim rtrim trim nullif coalesce regexp_match",
  "tn>t": "left right substr",
  "tnn>t": "substr",
  "tnt>t": "split_part",
  "ttt>t": "replace regexp_replace translate overlay",
  "ttn>t": "split_part substr_index",
  "n>t": "chr to_hex arrow_typeof",
  "lt>t": "array_to_string",
  "dt>t": "to_char",
  "tt>b": "contains ends_with regexp_like starts_with",
  "ln>b": "array_has",
  "ll>b": "array_has_all array_has_any",
  "n>b": "isnan iszero",
  "nn>l": "make_array",
  "nnn>l": "make_array",
  "l>l": "array_distinct array_pop_back array_pop_front array_reverse array_sort flatten",
  "ln>l": "array_append array_remove array_remove_all array_positions",
  "ll>l": "array_concat array_except array_intersect array_union",
  "lnn>l": "array_replace array_replace_all array_slice array_remove_n",
  "n>d":
    "from_unixtime to_timestamp to_timestamp_micros to_timestamp_millis to_timestamp_nanos to_timestamp_seconds to_date",
  "nnn>d": "make_date",
  "t>d": "to_date to_timestamp",
  ">d": "current_date now",
  "n>any": `version uuid decode encode digest named_struct struct map get_field map_keys date_bin date_part date_trunc union_extract
    json_extract json_get avg count max sum median stddev array_agg row_number rank nvl2 st_distance string_to_array element_at`,
};
const leaves: Readonly<Record<string, readonly string[]>> = {
  n: [
    "id",
    "price",
    "0",
    "1",
    "-1",
    "2147483647",
    "9223372036854775807",
    "-9223372036854775808",
    "1e308",
    "0.1",
    "1e-300",
    "null",
  ],
  t: ["title", "''", "'a'", "'%'", "'[('", "'(a+)+$'", "'2026-01-01'", "'ß🎬'", "'hour'", "'Utf8'", "null"],
  b: ["seen", "true", "false", "null"],
  l: ["make_array(1, 2)", "make_array(id, 3)", "make_array(null)", "[]"],
  d: ["date '0001-01-01'", "timestamp '9999-12-31 23:59:59'", "now()", "null"],
  any: ["missing", "nested.a", "tags[1]", "X'00ff'", "interval '1' month", "{}", "?", "$1"],
};
/** The templates of operators by the type of their result. */
const templates: Readonly<Record<string, readonly string[]>> = {
  n: [
    "(n + n)",
    "(n * n)",
    "(n / n)",
    "(n % n)",
    "(n & n)",
    "(n << n)",
    "-n",
    "cast(t as int)",
    "cast(n as tinyint)",
    "cast(n as decimal(38, 10))",
  ],
  t: [
    "(t || t)",
    "cast(n as string)",
    "cast(d as string)",
    "case when b then t else t end",
    "repeat(t, 3)",
    "lpad(t, 9, t)",
  ],
  b: [
    "(n < n)",
    "(t = t)",
    "(b and b)",
    "(b or b)",
    "not b",
    "t like t",
    "t ilike t",
    "t ~ t",
    "n in (n, n)",
    "n between n and n",
    "l is null",
    "(d > d)",
  ],
  l: ["make_array(n, n, n)", "range(1, 9, 2)", "array_repeat(n, 3)", "array_resize(l, 5, n)"],
  d: ["(d + interval '1' month)", "cast(t as timestamp)", "cast(t as date)", "date_trunc('hour', d)"],
  any: ["n", "t", "b", "l", "d"],
};

/** Generates expressions of each type. One in a hundred arguments has a different type, which the library must reject. */
const expressions = fc.letrec<Record<string, string>>((tie) => {
  const argument = (type: string) =>
    fc.oneof({ weight: 99, arbitrary: tie(type) }, { weight: 1, arbitrary: tie("any") });
  const filled = (template: string) =>
    fc.tuple(...Array.from(template.matchAll(/\b(any|[ntbld])\b/g), ([type]) => argument(type))).map((args) => {
      const rest = [...args];
      return template.replaceAll(/\b(any|[ntbld])\b/g, () => rest.shift() ?? "");
    });
  const calls = (type: string) =>
    Object.entries(functions).flatMap(([signature, names]) => {
      const [args = "", result] = signature.split(">");
      return result === type
        ? names
            .trim()
            .split(/\s+/)
            .map((name) => `${name}(${[...args].join(", ")})`)
        : [];
    });
  return Object.fromEntries(
    Object.entries(leaves).map(([type, texts]) => {
      const compound = [...(templates[type] ?? []), ...calls(type)];
      return [
        type,
        fc.oneof(
          { maxDepth: 4, depthSize: "small" },
          { weight: 1, arbitrary: fc.constantFrom(...texts) },
          { weight: 3, arbitrary: fc.constantFrom(...compound).chain(filled) },
        ),
      ];
    }),
  );
});

/** The operations that evaluate an expression, each with its type and its body. */
const operations: Readonly<Record<string, readonly [type: string, bodyOf: (expression: string) => object]>> = {
  count_rows: ["b", (predicate) => ({ predicate })],
  query: ["b", (filter) => ({ filter, k: 10, vector: {} })],
  explain_plan: ["b", (filter) => ({ query: { filter, k: 10, vector: {} } })],
  update: ["t", (value) => ({ updates: [["title", value]] })],
  delete: ["b", (predicate) => ({ predicate: `(${predicate}) and false` })],
  add_columns: ["any", (value) => ({ new_columns: [{ name: "added", expression: value }] })],
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

const searchMs = (Number(fuzzSeconds) * 1_000) / Object.keys(operations).length;
const extent =
  searchMs > 0
    ? { numRuns: Number.MAX_SAFE_INTEGER, interruptAfterTimeLimit: searchMs, markInterruptAsFailure: false }
    : { numRuns: Number(runs) };

test.each(Object.entries(operations))(
  "%s evaluates random expressions or refuses them",
  { timeout: searchMs + 300_000 },
  async (name, [type, bodyOf]) => {
    await createTable();
    const answers = new Map<number, number>();
    const property = fc.asyncProperty(expressions[type] ?? fc.constant(""), async (sql) => {
      const { status, text } = await post(
        `/v1/table/${encodeURIComponent(table)}/${name}`,
        JSON.stringify(bodyOf(sql)),
      );
      answers.set(status, (answers.get(status) ?? 0) + 1);
      // A 503 would mean that the expression crashed the child process of the Lance library.
      expect([200, 400, 404, 406], `${status} ${text.slice(0, 1000)}`).toContain(status);
      if (name === "add_columns" && status === 200) await createTable();
    });
    await fc.assert(property, { ...extent, seed: Number(seed), endOnFailure: true });
    const all = [...answers.values()].reduce((sum, count) => sum + count, 0);
    process.stderr.write(`${name}: ${all} expressions, ${answers.get(200)} of them evaluated\n`);
    expect(answers.get(200), "expressions that were evaluated").toBeGreaterThan(all / 20);
    expect(service.peakResidentMiB()).toBeLessThan(residentMaxMiB);
  },
);
