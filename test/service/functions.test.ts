import { Float64, Table, Utf8, vectorFromArray } from "apache-arrow";
import { describe, expect, test } from "vitest";
import { beginAttempt, claimAttempt, finishAttempt } from "../support/attempts.ts";
import { uniqueName, useCatalog } from "../support/catalog.ts";
import {
  functionColumns as application,
  type FunctionRegistration,
  functionRegistration,
  registerFunction,
} from "../support/functions.ts";
import { arrowStream, createFilms } from "../support/rows.ts";

const catalog = useCatalog();

type Fields = Readonly<Record<string, unknown>>;
const field = (name: string, arrow_type: string, nullable = false) => ({ name, arrow_type, nullable });
const struct = {
  kind: "named_struct",
  fields: [field("upper", "utf8"), field("vector", "fixed_size_list<float32, 4>")],
};

const register = (id: readonly string[], definition?: FunctionRegistration) =>
  registerFunction(catalog, id, definition);

type Version = Awaited<ReturnType<typeof register>>;

/** Creates films with the column `double`, which a Function computes of `id`. */
async function createComputed(
  outputs: Readonly<Record<string, string>> = { $value: "double" },
  definition?: FunctionRegistration,
) {
  const id = await createFilms(catalog);
  const [namespace = ""] = id;
  const version = await register([namespace, "f"], definition);
  const added = await catalog.call("remoteAlterTableAddColumns", {
    id,
    ...application(version, { value: definition === undefined ? "id" : "title" }, outputs),
  });
  expect(added.status).toBe(200);
  return { id, namespace, version };
}

const ofTitles = { signature: { inputs: [field("value", "utf8")], output: struct } };

async function fieldsOf(id: readonly string[]) {
  const { schema } = (await catalog.call("describeTable", { id, load_detailed_metadata: true })).body;
  return schema?.fields ?? [];
}

async function openRefresh(id: readonly string[], column = "double") {
  return (await catalog.call("alterTableBackfillColumns", { id, column })).body.job_id;
}

describe("a Function", () => {
  test("is described by its job to readers of its own namespace only, not of another one with the same joined name", async () => {
    const outer = uniqueName("outer");
    const dotted = { delimiter: "." };
    await catalog.call("createNamespace", { id: [`${outer}$inner`] }, dotted);
    const request = { id: [`${outer}$inner`, "f"], ...functionRegistration() };
    const { job_id } = (await catalog.call("createFunction", request, dotted)).body;
    expect((await catalog.call("describeRemoteJob", { job_id }, dotted)).status).toBe(200);
    const key = await catalog.keyFor("reader", { [`${outer}$inner`]: "reader" });
    const joined = job_id.replace(".", "$");
    expect((await catalog.call("describeRemoteJob", { job_id: joined }, { key })).status).toBe(404);
  });

  test("is registered once for each definition, and gets the next version for another one", async () => {
    const namespace = uniqueName("ns");
    await catalog.call("createNamespace", { id: [namespace] });
    const id = [namespace, "f"];
    const first = await register(id);
    expect(first).toMatchObject({ name: "f", namespace_path: [namespace], version: "1", disabled: false });
    expect(Date.parse(first.created_at)).toBe(first.created_at_millis);
    expect(await register(id)).toEqual(first);
    const second = await register(id, { runtime: { env: { B: "2", A: "1" } } });
    expect(second.version).toBe("2");
    expect(second.image.manifest_digest).not.toBe(first.image.manifest_digest);
    expect(await register(id, { runtime: { env: { A: "1", B: "2" } } })).toEqual(second);
    expect((await catalog.call("describeFunction", { id, version: "2" })).body).toEqual(second);
    for (const version of ["9999999999", "2147483648"])
      expect((await catalog.call("describeFunction", { id, version })).status).toBe(400);
    expect((await catalog.call("describeFunction", { id, version: "3" })).error).toMatchObject({
      status: 404,
      detail: `the Function ${namespace}$f has no version 3`,
    });
    const after = Buffer.from(JSON.stringify(["functions", { name: "f", version: 2 ** 31 }])).toString("base64url");
    expect((await catalog.call("listFunctions", { id: [namespace], page_token: after })).error.status).toBe(400);
    await register([namespace, "a"]);
    const { functions, page_token } = (await catalog.call("listFunctions", { id: [namespace], limit: 2 })).body;
    expect(functions.map(({ definition: { name, version } }) => [name, version])).toEqual([
      ["a", "1"],
      ["f", "1"],
    ]);
    const rest = (await catalog.call("listFunctions", { id: [namespace], page_token })).body;
    expect(rest).toEqual({ functions: [{ definition: second }] });
    expect((await catalog.call("dropFunction", { id, version: "2" })).body).toEqual({ dropped: true });
    expect((await catalog.call("dropFunction", { id, version: "2" })).body).toEqual({ dropped: false });
  });

  test("counts as content of its namespace, and is dropped with it", async () => {
    const namespace = uniqueName("ns");
    await catalog.call("createNamespace", { id: [namespace] });
    await register([namespace, "f"]);
    expect((await catalog.call("dropNamespace", { id: [namespace] })).error.code).toBe(3);
    expect((await catalog.call("dropNamespace", { id: [namespace], behavior: "Cascade" })).status).toBe(200);
    await catalog.call("createNamespace", { id: [namespace] });
    expect((await catalog.call("listFunctions", { id: [namespace] })).body).toEqual({ functions: [] });
  });

  test("may be a bundle of modules and have any type of LanceDB's clients", async () => {
    const types = [
      "bool",
      "uint8",
      "large_utf8",
      "date32",
      "list<list<int64>>",
      "fixed_size_list<large_list<utf8>, 3>",
    ];
    const json = { type: "struct", fields: [{ name: "a", nullable: true, type: { type: "float16" } }] };
    const signature = {
      inputs: [...types, JSON.stringify(json)].map((type, index) => field(`p${index}`, type)),
      output: struct,
      initialization: [field("factor", "float64", true)],
    };
    const source = JSON.stringify({ files: { "user_function.py": "class f:\n    pass\n", "a/b.py": "" } });
    const version = await register(["bundled"], { source, artifact: { kind: "python_bundle" }, signature });
    expect(version.signature).toEqual(signature);
  });

  test("has a definition and a binding of at most 256 KiB, which lists and changes of tables read together", async () => {
    const long = "a".repeat(1_000);
    const inputs = Array.from({ length: 300 }, (_, index) => field(`${long}${index}`, "int64"));
    const tooLong = { signature: { inputs, output: struct } };
    const refused = await catalog.call("createFunction", { id: ["long"], ...functionRegistration(tooLong) });
    expect(refused.error).toMatchObject({ status: 400, detail: expect.stringContaining("262144 are allowed") });

    const initialized = { signature: { ...ofTitles.signature, initialization: [field("factor", "utf8")] } };
    const [version, id] = [await register(["initialized"], initialized), await createFilms(catalog)];
    const [inputsOf, outputs] = [{ value: "title" }, { upper: "upper", vector: "vector" }];
    const added = await catalog.call("remoteAlterTableAddColumns", {
      id,
      ...application(version, inputsOf, outputs, { factor: [long.repeat(300)] }),
    });
    expect(added.error).toMatchObject({ status: 400, detail: expect.stringContaining("262144 are allowed") });
  });

  const nested = (levels: number) => `${"list<".repeat(levels - 1)}utf8${">".repeat(levels - 1)}`;
  const unsupported = "decimal128(10, 2)";
  test.each<[what: string, status: number, text: string, definition: FunctionRegistration]>([
    ["an old version of Python", 400, "2.7", { runtime: { python_version: "2.7" } }],
    ["a future version of Python", 400, "3.15", { runtime: { python_version: "3.15" } }],
    ...[
      "--index-url=https://example.com",
      "-r x",
      "./x",
      "x @ file:///x",
      "x\n-r y",
      "x\r--index-url y",
      "x==1 --find-links .",
      "x==1 --hash=sha256:0",
      ["x==$", "{HOME}"].join(""),
      "x-1-py3-none-any.whl",
      "x.tar.gz[y]",
      "https://example.com/x.whl",
      "",
    ].map((other): [string, number, string, FunctionRegistration] => [
      `the package ${JSON.stringify(other)}`,
      400,
      `${JSON.stringify(other)} must be a package`,
      { runtime: { environment: { kind: "pip", packages: ["numpy", other] } } },
    ]),
    ["conda", 406, "conda", { runtime: { environment: { kind: "conda", packages: ["numpy"], channels: [] } } }],
    ["another runtime", 406, "java", { runtime: { kind: "java" } }],
    ["a blob", 406, "blob", { signature: { inputs: [field("value", "blob_v2")] } }],
    ["an unknown type", 400, unsupported, { signature: { inputs: [field("value", unsupported)] } }],
    ["a list without an item", 400, "list<>", { signature: { inputs: [field("value", "list<>")] } }],
    [
      "a type of too many levels",
      400,
      "no value of a Function",
      { signature: { inputs: [field("value", nested(17))] } },
    ],
    ["a parameter twice", 400, "twice", { signature: { inputs: [field("a", "utf8"), field("a", "utf8")] } }],
    ["another digest", 400, "artifact.digest", { artifact: { digest: "sha256:0" } }],
    ["a source without the entry point", 400, "defines no function or class g", { artifact: { entrypoint: "g" } }],
    ["an entry point that is no name", 400, "artifact.entrypoint", { artifact: { entrypoint: "f|g" } }],
    ["a source that is not UTF-8", 400, "UTF-8", { source: Buffer.from([0xff, 0xfe]) }],
    ["a source above 1 MiB", 400, "at most 1 MiB", { source: `def f(): pass\n#${" ".repeat(1024 * 1024)}` }],
    ...(
      [
        ["def f(value: float -> float:\n    return value\n", "line 1: the definition of f is not valid"],
        ["import a\n\n\ndef f(value)\n    return value\n", "line 4: the definition of f is not valid"],
        ["def f(value):\nreturn value\n", "is not valid Python"],
        ["class f:\n    def __call__(self, value=):\n        return value\n", "line 2:"],
        [
          "'''\nclass f: pass\n'''\ndef f(value: pa.Table):\n    return 1\n",
          "line 4: the parameter value has the annotation pa.Table",
        ],
        [
          "def f(\n    value: pa.ChunkedArray,\n):\n    pass\n",
          "line 2: the parameter value has the annotation pa.ChunkedArray",
        ],
        ["def f(value: 'pa.Array | None'):\n    pass\n", "has the annotation pa.Array | None"],
        ["class f:\n    def __call__(self, value: Optional[Array]):\n        pass\n", "line 2: the parameter value"],
      ] as const
    ).map(([source, text]): [string, number, string, FunctionRegistration] => [
      `the source ${JSON.stringify(source)}`,
      400,
      text,
      { source },
    ]),
    ...["a: pa.Array, b: int", "a: int, b: Array", "a: pa.RecordBatch, b: pa.RecordBatch"].map(
      (parameters): [string, number, string, FunctionRegistration] => [
        `the parameters ${parameters}`,
        400,
        "Use pyarrow.Array for all parameters",
        {
          source: `def f(${parameters}):\n    pass\n`,
          signature: { inputs: [field("a", "utf8"), field("b", "utf8")] },
        },
      ],
    ),
    ["a bundle without its entry", 400, "user_function.py", { source: "{}", artifact: { kind: "python_bundle" } }],
  ])("is refused with %s", async (_, status, text, definition) => {
    const { error } = await catalog.call("createFunction", { id: ["refused"], ...functionRegistration(definition) });
    expect(error).toMatchObject({ status, detail: expect.stringContaining(text) });
  });

  test.each<[what: string, source: string]>([
    [
      "decorators and types of one value",
      "@decorated(lambda x: 1.)\ndef f(value: Annotated[float, pa.float64()]):\n    return (yield)\n",
    ],
    [
      "parameters of types",
      "def f[T: float = int](value: T, *args: *Ts, other=lambda x, /: 1., **more):\n    return t'{value}'\n",
    ],
    [
      "comments and positional parameters",
      "def f(other: int = value, /, *, value: pa.Array): # )\n# a comment\n\n    return x[*value]\n",
    ],
    [
      "a class with a match statement",
      "class f(Base[*Ts], metaclass=M):\n    '''def f('''\n\n    def __call__(self, value: 'pa.RecordBatch'):\n        match value:\n            case [*x, _]: pass\n",
    ],
    ["an inherited method", "class f(WithCall): ...\n"],
    ["any parameters", "def f(**values): return 1.\n"],
    ["arrays of numpy", "def f(a, value: np.ndarray | list[pa.float32()] = None): print('''\ndef g(''')\n"],
    ["a long class", `class f:\n    x = '${"x".repeat(2 ** 16 - 60)}'\n    def __call__(self, other, value): pass\n`],
    ["brackets of many levels", `def f(value):\n    return ${"(".repeat(2 ** 19)}${")".repeat(2 ** 19 - 50)}`],
  ])("may have %s", async (_, source) => {
    const { status } = await catalog.call("createFunction", { id: ["parsed"], ...functionRegistration({ source }) });
    expect(status).toBe(200);
  });

  test("is not dropped while a hidden table uses it, which the refusal does not name", async () => {
    const { namespace, version } = await createComputed();
    const hidden = uniqueName("hidden");
    await catalog.call("createNamespace", { id: [hidden] });
    await catalog.call("renameTable", {
      id: [namespace, "films"],
      new_table_name: "films",
      new_namespace_id: [hidden],
    });
    const key = await catalog.keyFor(uniqueName("caller"), { [namespace]: "writer" });
    const drop = { id: [namespace, "f"], version: version.version };
    const { detail = "" } = (await catalog.call("dropFunction", drop, { key })).error;
    expect(detail).toContain("a column of a table that you may not read uses version 1");
    expect(detail).not.toContain(hidden);
    expect((await catalog.call("dropFunction", drop)).error.detail).toContain(`${hidden}$films`);
  });

  test("needs a name that LanceDB's clients accept, and a namespace", async () => {
    for (const id of [[], ["a name"]])
      expect((await catalog.call("createFunction", { id, ...functionRegistration() })).status).toBe(400);
    expect((await catalog.call("createFunction", { id: ["missing", "f"], ...functionRegistration() })).error.code).toBe(
      1,
    );
  });

  test("cannot be dropped while a column uses it", async () => {
    const { id, namespace } = await createComputed();
    const drop = () => catalog.call("dropFunction", { id: [namespace, "f"], version: "1" });
    expect((await drop()).error).toMatchObject({
      status: 400,
      detail: expect.stringMatching(`column double of the table ${namespace}\\$films uses version 1`),
    });
    await catalog.call("alterTableDropColumns", { id, columns: ["double"] });
    expect((await drop()).body).toEqual({ dropped: true });
  });
});

describe("a column of a Function", () => {
  test("is added without values, and only refers to its binding", async () => {
    const { id } = await createComputed();
    expect((await fieldsOf(id)).at(-1)).toEqual({
      name: "double",
      type: { type: "float64" },
      nullable: true,
      metadata: { "tiltyard.function_binding": expect.any(String) },
    });
    expect((await catalog.call("countTableRows", { id, predicate: "double IS NULL" })).body).toBe(3);
  });

  test("contains one field of the result, or all of it", async () => {
    const { id, version } = await createComputed({ vector: "vector", upper: "shout" }, ofTitles);
    const whole = application(version, { value: "title" }, { $value: "both" });
    await catalog.call("remoteAlterTableAddColumns", { id, ...whole });
    const vector = { type: "fixed_size_list", length: 4, fields: [{ name: "item", type: { type: "float32" } }] };
    const fields = [
      { name: "upper", type: { type: "utf8" } },
      { name: "vector", type: vector },
    ];
    expect(await fieldsOf(id)).toMatchObject([
      {},
      {},
      { name: "shout", type: { type: "utf8" } },
      { name: "vector", type: vector },
      { name: "both", type: { type: "struct", fields } },
    ]);
  });

  test.each<[what: string, text: string, change: (version: Version) => object]>([
    [
      "a missing version",
      "has no version 9",
      (version) => application({ ...version, version: "9" }, { value: "id" }, { $value: "c" }),
    ],
    [
      "a replaced version",
      "was replaced",
      (version) => application({ ...version, object_id: "x" }, { value: "id" }, { $value: "c" }),
    ],
    [
      "a missing column",
      "no column nothing for the parameter value",
      (version) => application(version, { value: "nothing" }, { $value: "c" }),
    ],
    [
      "a column of another type",
      "title has the type utf8, and the parameter value needs float64",
      (version) => application(version, { value: "title" }, { $value: "c" }),
    ],
    ["a missing parameter", "parameter value needs one column", (version) => application(version, {}, { $value: "c" })],
    [
      "an unknown parameter",
      "no parameter other",
      (version) => application(version, { value: "id", other: "id" }, { $value: "c" }),
    ],
    [
      "a column that exists",
      "column title exists already",
      (version) => application(version, { value: "id" }, { $value: "title" }),
    ],
    [
      "an unknown result",
      "one column for each field",
      (version) => application(version, { value: "id" }, { other: "c" }),
    ],
    [
      "an unknown argument",
      "no argument factor",
      (version) => application(version, { value: "id" }, { $value: "c" }, { factor: 1 }),
    ],
    [
      "other new columns",
      "new_columns",
      (version) => ({ ...application(version, { value: "id" }, { $value: "c" }), new_columns: [{ name: "c" }] }),
    ],
    [
      "an interval",
      "auto_refresh_interval_seconds",
      (version) => ({ ...application(version, { value: "id" }, { $value: "c" }), auto_refresh_interval_seconds: 60 }),
    ],
    ["a branch", "branch", (version) => ({ ...application(version, { value: "id" }, { $value: "c" }), branch: "b" })],
  ])("is refused for %s", async (_, text, change) => {
    const id = await createFilms(catalog);
    const version = await register([id[0] ?? "", "f"]);
    const { error } = await catalog.call("remoteAlterTableAddColumns", { id, ...change(version) });
    expect(error).toMatchObject({ status: 400, detail: expect.stringContaining(text) });
    expect(await fieldsOf(id)).toHaveLength(2);
  });

  test("requires the arguments of the constructor that have no default", async () => {
    const id = await createFilms(catalog);
    const initialization = [field("factor", "float64"), field("offset", "float64", true)];
    const signature = { initialization };
    const version = await register([id[0] ?? "", "f"], { source: "class f:\n    pass\n", signature });
    const add = (given: Fields) =>
      catalog.call("remoteAlterTableAddColumns", {
        id,
        ...application(version, { value: "id" }, { $value: "c" }, given),
      });
    expect((await add({ offset: 1 })).error.detail).toContain("argument factor is missing");
    expect((await add({ factor: 2.5 })).status).toBe(200);
    const job = (await openRefresh(id, "c")).split("$");
    const { body } = await catalog.call("describeJobFunction", { id: job });
    expect(body.function).toMatchObject({
      initialization: { factor: 2.5 },
      inputs: [{ parameter: "value", path: "id" }],
    });
  });

  test("has no integer in the arguments of the constructor that JSON would round", async () => {
    const id = await createFilms(catalog);
    const initialization = [field("seeds", "list<uint64>", true), field("factor", "float64", true)];
    const version = await register([id[0] ?? "", "f"], {
      source: "class f:\n    pass\n",
      signature: { initialization },
    });
    const add = (column: string, given: Fields) =>
      catalog.call("remoteAlterTableAddColumns", {
        id,
        ...application(version, { value: "id" }, { $value: column }, given),
      });
    expect((await add("a", { seeds: [1, 2 ** 61] })).error).toMatchObject({
      status: 400,
      detail: expect.stringContaining("the argument seeds has an integer beyond 2^53-1"),
    });
    expect((await add("b", { seeds: [2 ** 53 - 1], factor: 1e300 })).status).toBe(200);
  });

  test("is refused for a reader of the table, and for callers without a role on the Function", async () => {
    const id = await createFilms(catalog);
    const [namespace = ""] = id;
    const hidden = uniqueName("hidden");
    await catalog.call("createNamespace", { id: [hidden] });
    const version = await register([hidden, "f"]);
    const request = { id, ...application(version, { value: "id" }, { $value: "c" }) };
    const statusFor = async (grants: Readonly<Record<string, "reader" | "writer">>) => {
      const key = await catalog.keyFor(uniqueName("caller"), grants);
      return (await catalog.call("remoteAlterTableAddColumns", request, { key })).status;
    };
    expect(await statusFor({ [namespace]: "writer" })).toBe(403);
    expect(await statusFor({ [namespace]: "reader", [hidden]: "reader" })).toBe(403);
    expect(await statusFor({ [namespace]: "writer", [hidden]: "reader" })).toBe(200);
  });
});

describe("a table with a column of a Function", () => {
  const withValues = new Table({
    id: vectorFromArray([4], new Float64()),
    title: vectorFromArray(["Nostalghia"], new Utf8()),
    Double: vectorFromArray([8], new Float64()),
  });
  const alter = (id: readonly string[], alteration: Fields) =>
    catalog.call("alterTableAlterColumns", { id, alterations: [alteration] });

  test("accepts no values for it", async () => {
    const { id } = await createComputed();
    const body = arrowStream([withValues]);
    const answers = [
      await catalog.call("insertIntoTable", { id }, { body }),
      await catalog.call("mergeInsertIntoTable", { id, on: "id", when_not_matched_insert_all: true }, { body }),
      await catalog.call("updateTable", { id, updates: [["DOUBLE", "1"]] }),
    ];
    for (const { error } of answers)
      expect(error).toMatchObject({
        status: 400,
        detail: "double: is computed by the function f, so requests cannot contain its values. Omit it",
      });
    expect((await catalog.call("countTableRows", { id })).body).toBe(3);
  });

  test("accepts rows without it, and changes of other columns", async () => {
    const { id } = await createComputed();
    const body = arrowStream([{ id: 4, title: "Nostalghia" }]);
    expect((await catalog.call("insertIntoTable", { id }, { body })).status).toBe(200);
    const merge = { id, on: "id", when_matched_update_all: true, when_not_matched_insert_all: true };
    expect((await catalog.call("mergeInsertIntoTable", merge, { body })).status).toBe(200);
    expect((await catalog.call("updateTable", { id, updates: [["id", "id + 1"]] })).status).toBe(200);
    expect((await alter(id, { path: "title", rename: "name" })).status).toBe(200);
    expect((await catalog.call("alterTableDropColumns", { id, columns: ["name"] })).status).toBe(200);
  });

  test("keeps the inputs and the type of the column, and its metadata", async () => {
    const { id } = await createComputed();
    const problems = [
      [await alter(id, { path: "id", rename: "key" }), "id: is an input of the function f, so it cannot be renamed"],
      [await alter(id, { path: "ID", data_type: { type: "float32" } }), "is an input of the function f"],
      [await alter(id, { path: "`double`", data_type: { type: "float32" } }), "is computed by the function f"],
      [await catalog.call("alterTableDropColumns", { id, columns: ["id"] }), "Drop double first"],
      [
        await catalog.call("updateFieldMetadata", { id, updates: [{ path: "double", metadata: {}, replace: true }] }),
        "cannot be replaced",
      ],
      [
        await catalog.call("updateFieldMetadata", {
          id,
          updates: [{ path: "title", metadata: { "tiltyard.function_binding": "x" } }],
        }),
        "reserved",
      ],
    ] as const;
    for (const [{ error }, text] of problems)
      expect(error).toMatchObject({ status: 400, detail: expect.stringContaining(text) });
    expect((await fieldsOf(id)).map(({ name }) => name)).toEqual(["id", "title", "double"]);
  });

  test("drops the columns of one Function only together, also together with their inputs", async () => {
    const { id, namespace } = await createComputed({ upper: "upper", vector: "vector" }, ofTitles);
    const drop = (columns: readonly string[]) => catalog.call("alterTableDropColumns", { id, columns });
    expect((await drop(["upper"])).error).toMatchObject({
      status: 400,
      detail: expect.stringContaining("upper, vector"),
    });
    expect((await drop(["title", "upper"])).status).toBe(400);
    expect((await drop(["title", "upper", "vector"])).status).toBe(200);
    expect((await catalog.call("dropFunction", { id: [namespace, "f"], version: "1" })).body.dropped).toBe(true);
  });

  test("uses the new name of a renamed column in its next jobs", async () => {
    const { id } = await createComputed();
    expect((await alter(id, { path: "`double`", rename: "twice" })).status).toBe(200);
    const job = (await openRefresh(id, "twice")).split("$");
    expect((await catalog.call("describeJobFunction", { id: job })).body.function.outputs).toEqual([
      { result: "$value", column: "twice" },
    ]);
  });

  test("releases the Function when its rows are overwritten", async () => {
    const { id, namespace } = await createComputed();
    const request = { id, mode: "Overwrite" };
    expect((await catalog.call("createTable", request, { body: arrowStream([withValues]) })).status).toBe(200);
    expect((await catalog.call("insertIntoTable", { id }, { body: arrowStream([withValues]) })).status).toBe(200);
    expect((await catalog.call("dropFunction", { id: [namespace, "f"], version: "1" })).body.dropped).toBe(true);
  });

  test("keeps the Function on its main branch when another branch drops the column", async () => {
    const { id } = await createComputed();
    await catalog.call("createTableBranch", { id, name: "b" });
    expect((await catalog.call("alterTableDropColumns", { id, columns: ["double"], branch: "b" })).status).toBe(200);
    expect(await openRefresh(id)).toMatch(/\$/);
  });

  test("has an ordinary column once its version before the column is restored", async () => {
    const { id } = await createComputed();
    await catalog.call("restoreTable", { id, version: 1 });
    const column = { name: "double", expression: "id * 2" };
    await catalog.call("alterTableAddColumns", { id, new_columns: [column] });
    expect((await catalog.call("updateTable", { id, updates: [["double", "1"]] })).status).toBe(200);
    expect((await catalog.call("alterTableBackfillColumns", { id, column: "double" })).status).toBe(400);
  });
});

describe("a refresh", () => {
  test("opens one job for all columns of a Function, and accepts no limits", async () => {
    const { id } = await createComputed({ upper: "upper", vector: "vector" }, ofTitles);
    const job = await openRefresh(id, "vector");
    expect(await openRefresh(id, "upper")).toBe(job);
    for (const option of [{ where: "true" }, { batch_size: 10 }, { manifest: "{}" }])
      expect((await catalog.call("alterTableBackfillColumns", { id, column: "upper", ...option })).error).toMatchObject(
        {
          status: 406,
          detail: expect.stringMatching(`^${Object.keys(option)[0]}: .* upper `),
        },
      );
    const forged = { id, column: "upper", function_binding: "x" };
    expect((await catalog.call("alterTableBackfillColumns", forged)).status).toBe(400);
  });

  test("describes the Function to its job, with the rows that are computed already", async () => {
    const runtime = { environment: { kind: "pip", packages: ["numpy>=2"] } };
    const { id, namespace } = await createComputed({ upper: "shout", vector: "vector" }, { ...ofTitles, runtime });
    const job = await openRefresh(id, "shout");
    await beginAttempt(catalog, job);
    const of = { id: job.split("$") };
    const described = (await catalog.call("describeJobFunction", of)).body.function;
    const { artifact } = functionRegistration();
    expect(described).toEqual({
      ...{ name: "f", version: 1, binding: expect.any(String), kind: "python_callable", entrypoint: "f" },
      ...{
        content: artifact.content.data,
        python_version: "3.12",
        packages: ["numpy>=2"],
        env: {},
        gpu: false,
        secrets: [],
      },
      inputs: [{ parameter: "value", path: "title" }],
      input_types: ofTitles.signature.inputs,
      output: struct,
      outputs: [
        { result: "upper", column: "shout" },
        { result: "vector", column: "vector" },
      ],
      initialization: {},
      fragments: [],
    });
    const fragments = [
      { fragment_id: 0, signature: "a", rows: 2 },
      { fragment_id: 1, signature: "b", rows: 5 },
    ];
    const record = (fields: Fields) =>
      catalog.call("recordJobFunction", { ...of, attempt: 1, claim: "process", version: 3, fragments: [], ...fields });
    expect((await record({ fragments })).body).toEqual({});
    const changed = { fragment_id: 1, signature: "c", rows: 7 };
    for (let sent = 0; sent < 2; sent += 1) await record({ fragments: [changed], removed: [0] });
    expect((await catalog.call("describeJobFunction", of)).body.function.fragments).toEqual([changed]);
    await finishAttempt(catalog, job, { status: "Succeeded" });
    await record({ fragments });
    expect((await catalog.call("describeJobFunction", of)).body.function.fragments).toEqual([changed]);
    const other = await catalog.call("compactTable", { id: [namespace, "films"] });
    const without = { id: other.body.job_id.split("$") };
    expect((await catalog.call("describeJobFunction", without)).error.detail).toContain("evaluates no Function");
  });

  test("accepts records of its latest attempt and its process only", async () => {
    const { id } = await createComputed();
    const job = await openRefresh(id);
    await beginAttempt(catalog, job);
    const record = { id: job.split("$"), version: 3, fragments: [] };
    const status = async (fields: Fields) => (await catalog.call("recordJobFunction", { ...record, ...fields })).status;
    expect(await status({ attempt: 1, claim: "another" })).toBe(409);
    await claimAttempt(catalog, job);
    expect(await status({ attempt: 1, claim: "process" })).toBe(409);
  });

  test("reports its failed rows and its result to LanceDB's client", async () => {
    const { id } = await createComputed({ upper: "upper", vector: "vector" }, ofTitles);
    const job = await openRefresh(id, "upper");
    await beginAttempt(catalog, job);
    const error = { fragment_id: 1, row_offset: 7, error_type: "builtins.ValueError", error_message: "bad \0 value" };
    const errors = [error, { ...error, row_offset: 3 }, { ...error, fragment_id: 0, row_offset: undefined }];
    const record = { id: job.split("$"), attempt: 1, claim: "process", version: 3, fragments: [], errors };
    for (let sent = 0; sent < 2; sent += 1) await catalog.call("recordJobFunction", record);
    const list = async (fields: Fields) => (await catalog.call("listFunctionErrors", { id, ...fields })).body;
    const { records, truncated } = await list({ column: "vector", job_id: job });
    expect(truncated).toBe(false);
    expect(records.map(({ fragment_id, row_offset }) => [fragment_id, row_offset])).toEqual([
      [0, undefined],
      [1, 3],
      [1, 7],
    ]);
    expect(records[2]).toMatchObject({
      ...{ job_id: job, column: "vector", function: "f", function_version: "1", table_version: 3 },
      ...{ error_type: "builtins.ValueError", error_message: "bad \ufffd value" },
    });
    expect(await list({ limit: 1 })).toMatchObject({ records: [{ fragment_id: 0 }], truncated: true });
    const { errors: managed } = (await catalog.call("listJobErrors", { id: job.split("$") })).body;
    expect(managed.map(({ fragment_id, row_address }) => [fragment_id, row_address])).toEqual([
      ["0", undefined],
      ["1", "4294967299"],
      ["1", "4294967303"],
    ]);
    expect(managed[2]).toMatchObject({ type: "builtins.ValueError", message: "bad \ufffd value", column: "upper" });
    const failed = [
      { fragment_id: 1, rows: 2 },
      { fragment_id: 0, rows: 40 },
    ];
    for (const rows of [7, 50_000])
      await catalog.call("recordJobFunction", {
        ...{ ...record, errors: [] },
        failed: [...failed, { fragment_id: 9, rows }],
      });
    const incomplete = [
      { job_id: job, fragment_id: 0, rows_skipped: 40, rows_recorded: 1 },
      { job_id: job, fragment_id: 9, rows_skipped: 50_000, rows_recorded: 0 },
    ];
    expect(await list({ job_id: job })).toMatchObject({ fragments: incomplete, truncated: true });
    expect(await list({ column: "title" })).toEqual({ records: [], fragments: [], truncated: false });
    expect((await catalog.call("listJobErrors", { id: job.split("$") })).body.rows_failed).toBe(50_042);
    const result = { rows_assigned: 2, rows_failed: 1, rows_remaining: 1, source_version: 2, published_version: 3 };
    await finishAttempt(catalog, job, { status: "Succeeded", result });
    expect((await catalog.call("describeRemoteJob", { job_id: job })).body).toMatchObject({
      job_state: "DONE",
      result,
    });
  });

  test("is refused once the Function was dropped with its namespace", async () => {
    const id = await createFilms(catalog);
    const namespace = uniqueName("functions");
    await catalog.call("createNamespace", { id: [namespace] });
    const version = await register([namespace, "f"]);
    await catalog.call("remoteAlterTableAddColumns", { id, ...application(version, { value: "id" }, { $value: "c" }) });
    const job = (await openRefresh(id, "c")).split("$");
    await catalog.call("dropNamespace", { id: [namespace], behavior: "Cascade" });
    expect((await catalog.call("alterTableBackfillColumns", { id, column: "c" })).error).toMatchObject({
      status: 400,
      detail: expect.stringContaining("the function of c was dropped"),
    });
    expect((await catalog.call("describeJobFunction", { id: job })).error.status).toBe(404);
  });
});
