import { writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { inspect } from "node:util";
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import { accessBoundary, createGcsVendor } from "../../service/storage/gcs-credentials.ts";
import { parseLocation } from "../../service/storage/location.ts";
import { sessionPolicy } from "../../service/storage/s3-credentials.ts";
import { declareTable, startTestCatalog, type TestCatalog, uniqueName, useCatalog } from "../support/catalog.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const role = "arn:aws:iam::123456789012:role/tables";
const expiration = new Date(Date.now() + 3_600_000).toISOString();

/** Names with characters that mean something in patterns, policies, paths or SQL, and names that patterns would cover. */
const hostileNames = [
  "f",
  "fo",
  "*",
  "f*",
  "?",
  "f?",
  "%",
  "_",
  "..",
  ".",
  "\u0024{*}",
  "\u0024{aws:username}",
  "$",
  '"',
  "\\",
  "^",
];

/** Reports whether a pattern of AWS matches a text. */
function matches(pattern: string, text: string): boolean {
  const parts = pattern.match(/\$\{[^}]*\}|./gs) ?? [];
  const expression = parts.map((part) => {
    const escaped = /^\$\{([*?$])\}$/.exec(part)?.[1];
    if (escaped === undefined && part.startsWith("${")) throw new Error(`${pattern} has a variable`);
    if (escaped === undefined && (part === "*" || part === "?")) return part === "*" ? ".*" : ".";
    return (escaped ?? part).replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
  });
  return new RegExp(`^${expression.join("")}$`, "s").test(text);
}

/** Returns the actions that a session policy allows on objects. */
function objectActions(policy: string): string[] {
  return JSON.parse(policy).Statement[0].Action;
}

describe("a session policy", () => {
  const policyFor = (uri: string, access: "read" | "write" = "write", partition = "aws") =>
    JSON.parse(sessionPolicy({ location: parseLocation(uri), access }, partition));

  test("allows to read the objects of one folder, and to list them", () => {
    expect(policyFor("s3://lake/warehouse/ns/t-1.lance", "read")).toEqual({
      Version: "2012-10-17",
      Statement: [
        { Effect: "Allow", Action: ["s3:GetObject"], Resource: "arn:aws:s3:::lake/warehouse/ns/t-1.lance/*" },
        {
          Effect: "Allow",
          Action: "s3:ListBucket",
          Resource: "arn:aws:s3:::lake",
          Condition: { StringLike: { "s3:prefix": "warehouse/ns/t-1.lance/*" } },
        },
        {
          Effect: "Allow",
          Action: ["kms:Decrypt"],
          Resource: "*",
          Condition: { StringLike: { "kms:ViaService": "s3.*.amazonaws.com*" } },
        },
      ],
    });
  });

  test("allows to write and delete them too, and nothing more", () => {
    const [objects, list, keys] = policyFor("s3://lake/t").Statement;
    expect(objects.Action).toEqual([
      "s3:GetObject",
      "s3:PutObject",
      "s3:DeleteObject",
      "s3:AbortMultipartUpload",
      "s3:ListMultipartUploadParts",
    ]);
    expect(list.Action).toBe("s3:ListBucket");
    expect(keys.Action).toEqual(["kms:Decrypt", "kms:GenerateDataKey"]);
  });

  test("treats no character of a path as a pattern or a variable", () => {
    const [objects, list] = policyFor("s3://lake/a*b/%3F/$%7Baws:username%7D").Statement;
    expect(objects.Resource).toBe(`arn:aws:s3:::lake/a\${*}b/\${?}/\${$}{aws:username}/*`);
    expect(list.Condition.StringLike["s3:prefix"]).toBe(`a\${*}b/\${?}/\${$}{aws:username}/*`);
  });

  test("is ASCII, whatever the path has, and of the role's own AWS", () => {
    const location = parseLocation("s3://lake/caf\u00e9/\u{1f431}");
    const policy = sessionPolicy({ location, access: "read" }, "aws-cn");
    expect(policy).toMatch(/^[ -~]+$/);
    expect(JSON.parse(policy).Statement[0].Resource).toBe("arn:aws-cn:s3:::lake/caf\u00e9/\u{1f431}/*");
  });
});

describe("credentials for a table in S3", () => {
  let sts: Server;
  let catalog: TestCatalog;
  /** The requests to AWS, which it rejects while an error is set. */
  const asked: URLSearchParams[] = [];
  let refusal: string | undefined;

  beforeAll(async () => {
    sts = createServer(async (request, response) => {
      asked.push(new URLSearchParams(await text(request)));
      if (refusal !== undefined)
        return void response
          .writeHead(403, { "content-type": "text/xml" })
          .end(
            `<ErrorResponse><Error><Type>Sender</Type><Code>${refusal}</Code><Message>no to ${role}</Message></Error></ErrorResponse>`,
          );
      response.writeHead(200, { "content-type": "text/xml" }).end(
        `<AssumeRoleResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleResult><Credentials>
           <AccessKeyId>AKIAVENDED</AccessKeyId><SecretAccessKey>vended</SecretAccessKey>
           <SessionToken>session</SessionToken><Expiration>${expiration}</Expiration>
         </Credentials></AssumeRoleResult></AssumeRoleResponse>`,
      );
    });
    await new Promise<void>((resolve) => sts.listen(0, "127.0.0.1", resolve));
    vi.stubEnv("AWS_ENDPOINT_URL", `http://127.0.0.1:${(sts.address() as AddressInfo).port}`);
    vi.stubEnv("AWS_REGION", "eu-central-1");
    vi.stubEnv("AWS_ACCESS_KEY_ID", "catalog");
    vi.stubEnv("AWS_SECRET_ACCESS_KEY", "catalog");
    catalog = await startTestCatalog({
      TILTYARD_WAREHOUSE: "s3://lake/warehouse",
      TILTYARD_VEND_CREDENTIALS: "1",
      TILTYARD_VEND_S3_ROLE: role,
    });
  });
  afterEach(() => {
    asked.length = 0;
    refusal = undefined;
  });
  afterAll(async () => {
    await catalog.stop();
    vi.unstubAllEnvs();
    await new Promise((resolve) => sts.close(resolve));
  });

  const vended = {
    aws_access_key_id: "AKIAVENDED",
    aws_secret_access_key: "vended",
    aws_session_token: "session",
    aws_region: "eu-central-1",
    expires_at_millis: String(Date.parse(expiration)),
  };

  async function newNamespace(): Promise<string> {
    const namespace = uniqueName("vended");
    await catalog.call("createNamespace", { id: [namespace] });
    return namespace;
  }

  test("are for its folder, to write, for the principal that declares it", async () => {
    const id = [await newNamespace(), "t"];
    const key = await catalog.keyFor("wri ter/1", { [id[0] ?? ""]: "writer" });
    const { body } = await catalog.call("declareTable", { id, vend_credentials: true }, { key });
    expect(body.storage_options).toEqual(vended);
    expect(Object.fromEntries(asked[0] ?? [])).toMatchObject({
      Action: "AssumeRole",
      RoleArn: role,
      RoleSessionName: "tiltyard-wri_ter_1",
      DurationSeconds: "3600",
    });
    const policy = asked[0]?.get("Policy") ?? "";
    expect(JSON.parse(policy).Statement[0].Resource).toBe(`${body.location.replace("s3://", "arn:aws:s3:::")}/*`);
    expect(objectActions(policy)).toContain("s3:PutObject");
  });

  test("are to write for a writer that describes it, and to read for a reader", async () => {
    const table = await declareTable(catalog);
    const namespace = table.id[0] ?? "";
    asked.length = 0;
    for (const name of ["reader", "writer"] as const) {
      const key = await catalog.keyFor(name, { [namespace]: name });
      expect((await catalog.call("describeTable", { id: table.id }, { key })).body.storage_options).toEqual(vended);
    }
    const [forReader = [], forWriter = []] = asked.map((each) => objectActions(each.get("Policy") ?? ""));
    expect(forReader).toEqual(["s3:GetObject"]);
    expect(forWriter).toContain("s3:DeleteObject");
  });

  test("are asked for once when one principal opens it several times, and again after a failure", async () => {
    const id = [await newNamespace(), "t"];
    await catalog.call("declareTable", { id, vend_credentials: false });
    const describe = () => catalog.call("describeTable", { id });
    refusal = "AccessDenied";
    expect((await describe()).status).toBe(503);
    [refusal, asked.length] = [undefined, 0];
    for (const { body } of await Promise.all([describe(), describe(), describe()]))
      expect(body.storage_options).toEqual(vended);
    expect((await describe()).body.storage_options).toEqual(vended);
    expect(asked).toHaveLength(1);
    const key = await catalog.keyFor("other", { [id[0] ?? ""]: "writer" });
    await catalog.call("describeTable", { id }, { key });
    expect(asked.map((each) => each.get("RoleSessionName")?.endsWith("-other"))).toEqual([false, true]);
  });

  test("are not asked for when the caller wants none", async () => {
    const id = [await newNamespace(), "t"];
    for (const operation of ["declareTable", "describeTable"] as const)
      expect((await catalog.call(operation, { id, vend_credentials: false })).body.storage_options).toBeUndefined();
    expect(asked).toEqual([]);
  });

  test("are in a batch's answer for tables that request them", async () => {
    const namespace = await newNamespace();
    const declare = (name: string, more: object) => ({ declare_table: { id: [namespace, name], ...more } });
    const { body } = await catalog.call("batchCommitTables", {
      operations: [declare("with", { vend_credentials: true }), declare("without", {})],
    });
    expect(body.results.map((result) => result.declare_table?.storage_options)).toEqual([vended, undefined]);
  });

  test("answers 503 and declares nothing when AWS returns no credentials", async () => {
    const id = [await newNamespace(), "t"];
    refusal = "AccessDenied";
    const { error, headers } = await catalog.call("declareTable", { id });
    expect(error).toMatchObject({ status: 503, code: 17, detail: expect.stringContaining("vend_credentials: false") });
    expect(error.detail).not.toContain(role);
    expect(headers.get("retry-after")).toBe("1");
    expect((await catalog.call("tableExists", { id })).status).toBe(404);
  });

  test("reach no other table, whatever the names of tables, namespaces and folders are", async () => {
    const tables: { readonly location: string; readonly policy: string }[] = [];
    const vend = async (request: { readonly id: string[]; readonly location?: string }) => {
      asked.length = 0;
      const answer = await catalog.call("declareTable", request);
      if (answer.status === 200) tables.push({ location: answer.body.location, policy: asked[0]?.get("Policy") ?? "" });
      return answer.status;
    };
    const parent = await newNamespace();
    for (const name of hostileNames) {
      const isPath = !name.startsWith(".") && !name.includes("\\");
      const location = `s3://lake/warehouse/${parent}/at/${encodeURIComponent(name)}`;
      expect(await vend({ id: [parent, `at ${name}`], location })).toBe(isPath ? 200 : 400);
      // URLs cannot contain these names.
      if (name.startsWith(".")) continue;
      await catalog.call("createNamespace", { id: [parent, name] });
      expect(await vend({ id: [parent, name] })).toBe(200);
      expect(await vend({ id: [parent, name, "t"] })).toBe(200);
    }
    for (const name of ["..", "."]) {
      const operations = [{ declare_table: { id: [parent, name], vend_credentials: true } }];
      expect((await catalog.call("batchCommitTables", { operations })).status).toBe(400);
    }
    const keys = tables.map(({ location }) => `${decodeURIComponent(location.replace("s3://lake/", ""))}/data/1.lance`);
    for (const [index, { policy }] of tables.entries()) {
      const [objects, list] = JSON.parse(policy).Statement;
      const reached = (pattern: string, start = "") => keys.filter((key) => matches(pattern, `${start}${key}`));
      expect(reached(objects.Resource, "arn:aws:s3:::lake/")).toEqual([keys[index]]);
      expect(reached(list.Condition.StringLike["s3:prefix"])).toEqual([keys[index]]);
      for (const key of ["", "*", "warehouse/", `warehouse/${parent}/`])
        expect(matches(list.Condition.StringLike["s3:prefix"], key)).toBe(false);
    }
  });

  test("are refused for a path that AWS's policies have no room for", async () => {
    const id = [await newNamespace(), "t"];
    const location = `s3://lake/warehouse/${"x".repeat(900)}`;
    expect((await catalog.call("declareTable", { id, location })).error).toMatchObject({ status: 400, code: 13 });
    expect((await catalog.call("declareTable", { id, location, vend_credentials: false })).status).toBe(200);
    expect(asked).toEqual([]);
    refusal = "PackedPolicyTooLarge";
    const packed = await declareTable(catalog, id[0]).catch((error: Error) => error.message);
    expect(packed).toContain('"status":400');
  });
});

describe("credentials for a table in Google Cloud Storage", () => {
  test("reach the objects of one folder, and list them", () => {
    const rulesFor = (uri: string, access: "read" | "write") =>
      accessBoundary({ location: parseLocation(uri), access }).accessBoundary.accessBoundaryRules;
    expect(rulesFor("gs://lake/wh/t.lance", "read")).toEqual([
      {
        availableResource: "//storage.googleapis.com/projects/_/buckets/lake",
        availablePermissions: ["inRole:roles/storage.objectViewer"],
        availabilityCondition: {
          expression:
            'resource.name.startsWith("projects/_/buckets/lake/objects/wh/t.lance/") || ' +
            'api.getAttribute("storage.googleapis.com/objectListPrefix", "").startsWith("wh/t.lance/")',
        },
      },
    ]);
    const [rule] = rulesFor("gs://lake/a%22 || true || %22", "write");
    expect(rule?.availablePermissions).toEqual(["inRole:roles/storage.objectUser"]);
    expect(rule?.availabilityCondition.expression).toBe(
      'resource.name.startsWith("projects/_/buckets/lake/objects/a\\" || true || \\"/") || ' +
        'api.getAttribute("storage.googleapis.com/objectListPrefix", "").startsWith("a\\" || true || \\"/")',
    );
  });

  test("reach no other folder, whatever its name is", () => {
    const paths = hostileNames.filter((name) => !name.startsWith(".") && !name.includes("\\"));
    const keys = paths.map((path) => `${path}/data/1.lance`);
    for (const [index, path] of paths.entries()) {
      const location = parseLocation(`gs://lake/${encodeURIComponent(path)}`);
      const [rule] = accessBoundary({ location, access: "write" }).accessBoundary.accessBoundaryRules;
      const conditions = rule?.availabilityCondition.expression.split(" || ") ?? [];
      const [name = "", prefix = ""] = conditions.map((each) =>
        JSON.parse(/startsWith\((".*")\)$/.exec(each)?.[1] ?? ""),
      );
      const start = "projects/_/buckets/lake/objects/";
      expect(keys.filter((key) => `${start}${key}`.startsWith(name))).toEqual([keys[index]]);
      expect(keys.filter((key) => key.startsWith(prefix))).toEqual([keys[index]]);
    }
  });

  const exchanges: URLSearchParams[] = [];
  let exchanged: () => Response;

  beforeAll(() => {
    const account = join(temporaryFolder("tiltyard gcs "), "account.json");
    const user = { type: "authorized_user", client_id: "id", client_secret: "s", refresh_token: "r" };
    writeFileSync(account, JSON.stringify(user));
    vi.stubEnv("GOOGLE_APPLICATION_CREDENTIALS", account);
    // Google's library queries the machine for a project if it finds none.
    vi.stubEnv("GOOGLE_CLOUD_PROJECT", "test");
    // The addresses are fixed in Google's library, which finds the function for its requests here.
    vi.stubGlobal("window", {
      fetch: async (url: URL, init: { body: URLSearchParams }) => {
        if (url.hostname !== "sts.googleapis.com")
          return Response.json({ access_token: "all-rights", token_type: "Bearer", expires_in: 3600 });
        exchanges.push(new URLSearchParams(String(init.body)));
        return exchanged();
      },
    });
  });
  afterAll(() => {
    vi.unstubAllGlobals();
    vi.unstubAllEnvs();
  });

  test("are the catalog's own, exchanged for less", async () => {
    exchanged = () => Response.json({ access_token: "less", token_type: "Bearer", expires_in: 3600 });
    const before = Date.now();
    const catalog = await startTestCatalog({ TILTYARD_WAREHOUSE: "gs://lake/wh", TILTYARD_VEND_CREDENTIALS: "1" });
    try {
      const { location, storage_options = {} } = (await catalog.call("declareTable", { id: ["t"] })).body;
      expect(storage_options).toEqual({
        google_storage_token: "less",
        expires_at_millis: expect.stringMatching(/^\d+$/),
      });
      expect(Number(storage_options.expires_at_millis) - before).toBeGreaterThanOrEqual(3_600_000);
      const [exchange] = exchanges;
      expect(exchange?.get("subject_token")).toBe("all-rights");
      const options = JSON.parse(decodeURIComponent(exchange?.get("options") ?? ""));
      expect(options).toEqual(accessBoundary({ location: parseLocation(location), access: "write" }));
    } finally {
      await catalog.stop();
    }
  });

  test("reports a failed exchange with Google without the token", async () => {
    exchanged = () => Response.json({ error: "invalid_grant" }, { status: 400 });
    const request = { location: parseLocation("gs://lake/t"), access: "read", principal: "p" } as const;
    const error: unknown = await createGcsVendor()(request).catch((reason: unknown) => reason);
    expect(error).toMatchObject({ kind: "ServiceUnavailable", cause: expect.any(Error) });
    const logged = inspect(error, { depth: 20, showHidden: true });
    expect(logged).toContain("invalid_grant");
    expect(logged).not.toContain("all-rights");
  });
});

describe("credentials", () => {
  const files = useCatalog({ TILTYARD_VEND_CREDENTIALS: "1" });

  test("are none for a table in the local file system", async () => {
    const { id } = await declareTable(files);
    const { body } = await files.call("describeTable", { id, vend_credentials: true });
    expect(body.storage_options).toBeUndefined();
  });

  test.each(["s3", "gs"])("are handed out only by a catalog that is set to: %s", async (scheme) => {
    const catalog = await startTestCatalog({ TILTYARD_WAREHOUSE: `${scheme}://lake/warehouse` });
    try {
      const { body } = await catalog.call("declareTable", { id: ["t"], vend_credentials: true });
      expect(body.storage_options).toBeUndefined();
    } finally {
      await catalog.stop();
    }
  });
});
