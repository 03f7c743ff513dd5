import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { createManagementClient } from "../../client/index.ts";
import { useCatalog } from "../support/catalog.ts";
import { type Program, startProgram } from "../support/process.ts";
import { startTestDashboard } from "../support/ray-dashboard.ts";
import { startRayJobServer } from "../support/rayjob-server.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const honestJobs = 5;
const timeoutMs = 300_000;

/** Names of members of every object, of shells, paths, SQL and JSON, and texts that are valid in none of them. */
const texts = [
  ...["constructor", "__proto__", "toString", "hasOwnProperty", "valueOf", "prototype", "default", "null", "undefined"],
  ...[
    "$",
    "a$$b",
    "$a",
    "..",
    "../../etc/passwd",
    "/",
    "*",
    "%",
    "_",
    "-x",
    "--",
    "'",
    '"',
    "`id`",
    "$(id)",
    "; exit 1",
  ],
  ...["{}", "[]", '{"a":', "0", "-1", "1e999", "NaN", "ünï ☃", "😀", "\u202eevil", "a\nb", "\t", "x".repeat(3_000)],
];

// The runner itself must refuse the names that its file does not have.
const catalog = useCatalog({ TILTYARD_RAY_CLUSTERS: texts.filter((text) => /^[^\s,]+$/.test(text)).join() });

type Opened = Readonly<{ body: { job_id: string }; status: number }>;
type Open = (table: readonly string[], key: string) => Promise<Opened>;

/** Requests for jobs with a text in each field that a job carries. */
function requestsWith(text: string): readonly Open[] {
  const compact =
    (fields: object): Open =>
    (id, key) =>
      catalog.call("compactTable", { id, ...fields }, { key });
  const manifest = (fields: object) => compact({ manifest: JSON.stringify(fields) });
  return [
    compact({ cluster: text }),
    compact({ manifest: text }),
    manifest({ pip: [text], [text]: text }),
    manifest({ conda: { [text]: text }, py_modules: [text] }),
    manifest({ env_vars: { [text]: text }, pip_extra_index_urls: [text] }),
    manifest({ zips: [[text]], head_image: text, worker_image: text }),
    (id, key) => catalog.call("buildTableIndex", { id, column: text, index_type: text, name: text }, { key }),
    async (id, key) => {
      await catalog.call("declareTable", { id: [...id, "v"] }, { key });
      return catalog.call("refreshMaterializedView", { id: [...id, "v"], cluster: text, [text]: text }, { key });
    },
    async (id, key) => {
      await catalog.call("declareTable", { id: [...id, text] }, { key });
      return catalog.call("compactTable", { id: [...id, text] }, { key });
    },
  ];
}

/** A platform of attempts that runs no code: the test reports the attempts instead. */
interface Platform {
  readonly args: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  /** Returns the ids of the jobs of all attempts, and ends the attempts. */
  endAll(): readonly string[];
  stop(): void | Promise<void>;
}

async function startRay(): Promise<Platform> {
  const dashboard = await startTestDashboard();
  dashboard.script = () => ({ logs: [""], statuses: ["RUNNING"] });
  return {
    args: ["--address", dashboard.url],
    environment: {},
    endAll: () =>
      [...dashboard.jobs.values()].map(({ metadata, statuses }) => {
        statuses.splice(0, 1, "SUCCEEDED");
        return metadata?.tiltyard_job ?? "";
      }),
    stop: () => dashboard.stop(),
  };
}

async function startKubernetes(): Promise<Platform> {
  const server = await startRayJobServer();
  const folder = temporaryFolder("runner-");
  const [kubeconfig, file] = [join(folder, "kubeconfig"), join(folder, "runner.yaml")];
  writeFileSync(kubeconfig, server.kubeConfig.exportConfig());
  writeFileSync(file, JSON.stringify({ rayClusters: { default: { image: "ours:1", config_method: "LOCAL" } } }));
  return {
    args: ["--file", file],
    environment: { KUBECONFIG: kubeconfig },
    endAll: () =>
      [...server.objects].flatMap(([key, object]) => {
        if (!key.startsWith("rayjobs ")) return [];
        object.status = { jobDeploymentStatus: "Complete", jobStatus: "SUCCEEDED" };
        return object.metadata.annotations["tiltyard.dev/job"];
      }),
    stop: () => server.stop(),
  };
}

let runner: Program | undefined;
let platform: Platform | undefined;
afterEach(async () => {
  runner?.child.kill("SIGKILL");
  await runner?.finished;
  await platform?.stop();
});

test.each([
  ["on a Ray", startRay],
  ["on Kubernetes", startKubernetes],
])(
  "runs every job of one principal %s while another one opens jobs with hostile values in every field",
  async (_, start) => {
    platform = await start();
    const { args, environment, endAll } = platform;
    const space = `s${crypto.randomUUID()}`;
    const [mallory, ann] = [`${space}m`, `${space}a`];
    const keys = {
      mallory: await catalog.keyFor(mallory, { [mallory]: "writer" }),
      ann: await catalog.keyFor(ann, { [ann]: "writer" }),
      runner: await catalog.keyFor(`${space}r`, { $: "runner" }),
    };
    for (const namespace of [mallory, ann]) await catalog.call("createNamespace", { id: [namespace] });
    const hostile: string[] = [];
    for (const [number, open] of texts.flatMap(requestsWith).entries()) {
      await catalog.call("createNamespace", { id: [mallory, `${number}`] });
      const id = [mallory, `${number}`, "t"];
      await catalog.call("declareTable", { id });
      const opened = await open(id, keys.mallory);
      if (opened.status < 300) hostile.push(opened.body.job_id);
      // The catalog reports all errors of such requests as errors of the client.
      else expect(opened.status).toBeLessThan(500);
    }
    expect(hostile.length).toBeGreaterThan(50);
    const honest: string[] = [];
    for (let number = 0; number < honestJobs; number += 1) {
      await catalog.call("declareTable", { id: [ann, `${number}`] });
      honest.push((await catalog.call("compactTable", { id: [ann, `${number}`] }, { key: keys.ann })).body.job_id);
    }

    const limits = ["--max-jobs", "120", "--max-jobs-per-principal", "100"];
    const settings = { ...environment, TILTYARD_CATALOG_URL: catalog.url, TILTYARD_API_KEY: keys.runner };
    runner = startProgram(["runner/main.ts", ...args, ...limits], settings);
    const management = createManagementClient({ url: catalog.url, apiKey: catalog.adminKey });
    const describe = async (id: string) => (await management.describeJob({ id: id.split("$") })).job;
    const isOpen = ({ status }: { readonly status: string }) => status === "Queued" || status === "Running";
    const ended = new Set<string>();
    await expect
      .poll(
        async () => {
          expect(runner?.child.exitCode).toBe(null);
          for (const id of endAll()) {
            if (ended.has(id)) continue;
            const { status, attempt } = await describe(id);
            if (status !== "Queued") continue;
            const request = { id: id.split("$"), attempt, claim: "process" };
            await management.startJobAttempt(request);
            const end = honest.includes(id)
              ? { status: "Succeeded" as const }
              : { status: "Failed" as const, reason: "no" };
            await management.finishJobAttempt({ ...request, ...end });
            ended.add(id);
          }
          const { jobs } = await management.listJobs({ status: ["Queued", "Running"] });
          return jobs.filter(isOpen).length;
        },
        { timeout: timeoutMs, interval: 200 },
      )
      .toBe(0);
    for (const id of honest) expect(await describe(id)).toMatchObject({ status: "Succeeded", attempt: 1 });
    for (const id of hostile)
      expect(await describe(id)).toMatchObject({ status: "Failed", reason: expect.stringMatching(/\S/) });
  },
  timeoutMs,
);
