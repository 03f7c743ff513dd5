import { writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import type { Command } from "commander";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { runCommandLine, tiltyard as tiltyardProgram } from "../../client/command-line.ts";
import type { Finding } from "../../client/doctor/checks.ts";
import { rayPod, startTestApiServer, type TestApiServer } from "../support/api-server.ts";
import { commit, declareTable, useCatalog } from "../support/catalog.ts";
import { startCommand } from "../support/command.ts";
import { childrenOf, startProgram } from "../support/process.ts";
import { startTestDashboard, type TestDashboard } from "../support/ray-dashboard.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const folder = temporaryFolder("tiltyard command ");
const file = join(folder, "cluster.yaml");
writeFileSync(file, "name: embeddings\nworker_groups:\n  - {name: cpu, min_replicas: 1}\n");

let server: TestApiServer;
let dashboard: TestDashboard;
beforeEach(async () => {
  [server, dashboard] = await Promise.all([startTestApiServer(), startTestDashboard()]);
  server.forwardTo = dashboard.port;
  server.onCreate = ({ metadata: { name } }) => {
    server.pods.push(rayPod(name, "head"), rayPod(name, "worker"));
  };
});
afterEach(() => Promise.all([server.stop(), dashboard.stop()]));

/** Starts the command as a process, for tests that need one. */
const start = (args: readonly string[], environment: Record<string, string> = {}) =>
  startProgram(["client/main.ts", ...args], { KUBECONFIG: server.kubeConfigFile, ...environment });
const startHere = (args: readonly string[], environment: Record<string, string> = {}) =>
  startCommand(runCommandLine, args, { KUBECONFIG: server.kubeConfigFile, ...environment });
const run = (...args: Parameters<typeof startHere>) => startHere(...args).finished;
const tiltyard = (...args: string[]) => run(args);

test("reports an output that cannot be written, without a stack trace", async () => {
  const { code, stderr } = await startProgram(["client/main.ts", "--version"], {}, { stdout: "/dev/full" }).finished;
  expect([code, stderr]).toEqual([1, expect.stringMatching(/^standard output: ENOSPC.+\n$/)]);
});

describe("tiltyard run", () => {
  test("creates a Ray cluster, runs the command on it through a forwarded port, and deletes the cluster", async () => {
    dashboard.script = () => ({ logs: ["half\n", "half\nall\n"], statuses: ["RUNNING", "SUCCEEDED"] });
    // KubeRay generates the token of each Ray cluster, and the client reads it from the cluster's secret.
    dashboard.token = "token of embeddings";
    const args = ["run", "-f", file, "-e", "A=it's", "--", "python", "a b.py", "--x=1"];
    const { code, stdout, stderr } = await start(args).finished;
    expect(stderr).toContain("embeddings [####################] 2 of 2 pods ready");
    expect([code, stdout]).toEqual([0, "half\nall\n"]);
    const [job] = dashboard.jobs.values();
    expect(job).toMatchObject({ entrypoint: "python 'a b.py' --x=1", runtime_env: { env_vars: { A: "it's" } } });
    expect(server.clusters.size).toBe(0);
  });

  test.each([
    ["FAILED", 3],
    ["STOPPED", 4],
  ])("ends a job as %s with exit code %i and deletes the cluster", async (status, code) => {
    dashboard.script = () => ({ logs: ["oh\n"], statuses: [status] });
    const finished = await tiltyard("run", "-f", file, "--", "false");
    expect(finished.code).toBe(code);
    expect(finished.stderr).toContain(`${status}: it ended so`);
    expect(server.clusters.size).toBe(0);
  });

  test("prints one JSON value with --json, and what the job prints beside it", async () => {
    const { stdout, stderr } = await tiltyard("run", "-f", file, "--json", "--", "true");
    expect(JSON.parse(stdout)).toMatchObject({
      status: "SUCCEEDED",
      submission_id: expect.stringMatching(/^raysubmit_/),
    });
    expect(stderr).toContain("done\n");
  });

  test("stops the job and deletes the cluster when it is interrupted", async () => {
    dashboard.script = () => ({ logs: [""], statuses: ["RUNNING"] });
    const program = start(["run", "-f", file, "--", "sleep", "1000"]);
    await program.printed("job raysubmit_");
    program.child.kill("SIGINT");
    expect((await program.finished).code).toBe(130);
    expect([...dashboard.jobs.values()].map((job) => job.statuses)).toEqual([["STOPPED"]]);
    expect(server.clusters.size).toBe(0);
  });

  test("deletes the cluster when it is interrupted before the start of the job", async () => {
    server.onCreate = () => {};
    const program = start(["run", "-f", file, "--", "true"]);
    await program.printed("0 of 2 pods ready");
    program.child.kill("SIGTERM");
    expect((await program.finished).code).toBe(130);
    expect([server.clusters.size, dashboard.jobs.size]).toEqual([0, 0]);
  });

  test("says what it could not delete when it is interrupted", async () => {
    dashboard.script = () => ({ logs: [""], statuses: ["RUNNING"] });
    const program = startHere(["run", "-f", file, "--", "sleep", "1000"]);
    await program.printed("job raysubmit_");
    server.forbids = ({ method }) => method === "DELETE";
    process.emit("SIGINT");
    const { code, stderr } = await program.finished;
    expect(code).toBe(130);
    expect(stderr).toMatch(/cannot delete the RayCluster embeddings: .+; delete the rest with: tiltyard/);
  });

  test("reports the failure of the job and the cluster that it could not delete", async () => {
    server.forbids = ({ method }) => method === "DELETE";
    dashboard.jobs.set("taken", { entrypoint: "true", runtime_env: {}, logs: [""], statuses: ["RUNNING"] });
    const { code, stderr } = await tiltyard("run", "-f", file, "--submission-id", "taken", "--", "true");
    expect(code).toBe(1);
    expect(stderr).toMatch(/tiltyard: .+taken already exists.+\ncannot delete the RayCluster embeddings/);
  });

  test("deletes the cluster when the reader of its output has exited", async () => {
    const logs = Array.from({ length: 100 }, (_, lines) => "y\n".repeat(lines));
    dashboard.script = () => ({ logs, statuses: ["RUNNING"] });
    const program = start(["run", "-f", file, "--", "yes"]);
    await program.printed("job raysubmit_");
    program.child.stdout?.destroy();
    const { code, stderr } = await program.finished;
    expect([code, stderr]).toEqual([130, expect.not.stringContaining("EPIPE")]);
    expect(server.clusters.size).toBe(0);
  });

  test("moves the transaction of the column that it fills", async () => {
    const table = await declareTable(catalog);
    await commit(catalog, table, 1);
    const args = ["run", "-f", file, "--table", table.id.join("$"), "--column", "c", "--", "true"];
    const environment = { TILTYARD_CATALOG_URL: catalog.url, TILTYARD_API_KEY: catalog.adminKey };
    const { code, stderr } = await run(args, environment);
    expect(code).toBe(0);
    const [, transactionId = ""] = /transaction (\S+)/.exec(stderr) ?? [];
    const { body } = await catalog.call("describeTransaction", { id: transactionId.split("$") });
    expect(body.status).toBe("Succeeded");
  });
});
const catalog = useCatalog();

/** Returns the names of the commands without further commands, such as `tags create`. */
function leavesOf(command: Command, path: readonly string[] = []): string[] {
  return command.commands.flatMap((each) => {
    const names = [...path, each.name()];
    return each.commands.length === 0 ? [names.join(" ")] : leavesOf(each, names);
  });
}

function leafAt(program: Command, path: string): Command {
  const find = (command: Command, name: string) => command.commands.find((each) => each.name() === name) ?? command;
  return path.split(" ").reduce(find, program);
}

/** Reports whether a command receives an option that follows its arguments. */
function parsedBy(path: string, flag: string): boolean {
  const program = tiltyardProgram();
  const leaf = leafAt(program, path);
  let isReceived = false;
  leaf.action(() => {});
  for (const argument of leaf.registeredArguments) argument.argParser<string>((value) => value);
  for (const option of leaf.options) {
    option.argParser<string>((value) => value);
    option.makeOptionMandatory(false);
    if ([option.long, option.short].includes(flag)) leaf.on(`option:${option.name()}`, () => (isReceived = true));
  }
  const option = leaf.options.find(({ long, short }) => (long ?? short) === flag);
  const values = option?.required || option?.optional ? [option.argChoices?.[0] ?? "1"] : [];
  const args = leaf.registeredArguments.map(({ argChoices }) => argChoices?.[0] ?? "x");
  program.parse([...path.split(" "), ...args, flag, ...values], { from: "user" });
  return isReceived;
}

describe("tiltyard", () => {
  test.each([
    [["run", "--", "x"], "describe the Ray cluster with -f FILE, or run the command on this machine with --local"],
    [["cluster", "up"], "describe the Ray cluster with -f FILE"],
    [["ray", "job", "list"], "name the Ray cluster with -c NAME, -f FILE or --address URL"],
    [["run", "-f", "/no/such/file", "--", "x"], "cannot read /no/such/file"],
    [["run", "-f", file], "missing required argument 'command'"],
    [["run", "-f", file, "-e", "A", "--", "x"], "It must be NAME=VALUE."],
    [["run", "-f", file, "-w", join(folder, "no"), "--", "x"], "It must be a folder."],
    [["run", "-f", file, "--table", "t", "--", "x"], "need a catalog"],
    [["cluster", "up", "-f", file, "--ttl", "soon"], "It must be like 90m, 8h or 2d."],
    [["run", "--local", "-f", file, "--", "x"], "cannot be used with option '-f, --file <file>'"],
    [["clusters"], "unknown command 'clusters'"],
    [["doctor", "--config-method", "SSH"], "argument 'SSH' is invalid"],
    [["doctor", "--stack-outputs", file], `cannot use ${file}: these are not the outputs of a Tiltyard stack`],
    [["jobs", "list", "--url", "localhost:2333"], "the URL of the catalog must begin with http:// or https://"],
    [["jobs", "list", "--url", "http://127.0.0.1:9", "--limit", "0"], "It must be a whole number above 0."],
    [["tables", "head", "t", "--url", "http://127.0.0.1:9", "--limit", "101"], "It must be at most 100."],
    [["jobs", "compact", "t", "--priority", "3"], "argument '3' is invalid. It must be one of high, normal, low."],
    [
      ["ray", "job", "list", "--address", "localhost:8265"],
      "the URL of Ray's dashboard must begin with http:// or https://",
    ],
  ])("exits with 2 and says what is wrong: %j", async (args, message) => {
    const { code, stderr } = await tiltyard(...args);
    expect([code, stderr]).toEqual([2, expect.stringContaining(message)]);
    expect(server.clusters.size).toBe(0);
  });

  test("reports a dashboard of Ray that does not respond", async () => {
    const { code, stderr } = await tiltyard("ray", "job", "list", "--address", "http://127.0.0.1:1");
    const problem = "no dashboard of Ray answers at http://127.0.0.1:1: connect ECONNREFUSED 127.0.0.1:1";
    expect([code, stderr]).toEqual([1, `tiltyard: ${problem}\n`]);
  });

  test("reports a missing kubeconfig", async () => {
    const environment = { KUBECONFIG: "", HOME: temporaryFolder("tiltyard home ") };
    const { code, stderr } = await run(["cluster", "list"], environment);
    expect([code, stderr]).toEqual([1, expect.stringContaining("no kubeconfig names a cluster: set KUBECONFIG")]);
  });

  test.each([
    ["is not there", () => join(folder, "no.kubeconfig")],
    ["is no YAML", () => join(folder, "broken.kubeconfig")],
  ])("says that a kubeconfig %s", async (_, path) => {
    writeFileSync(join(folder, "broken.kubeconfig"), "clusters: [\n");
    const { code, stderr } = await run(["cluster", "list"], { KUBECONFIG: path() });
    expect([code, stderr]).toEqual([1, expect.stringMatching(/the kubeconfig cannot be read: .+KUBECONFIG/s)]);
  });

  test.each([
    ["there is none", "", /ray is not on the PATH: run pip install 'ray\[default\]'/],
    ["it does not run", "exit 7", /the ray on the PATH does not run/],
    ["it is too old", "echo ray, version 2.42.0", /Ray must be 2.43 or later, and this one is 2.42.0/],
    ["it does not start", '[ "$1" = start ] && echo no room && exit 1; echo 2.60.0', /Ray did not start: no room/],
  ])("starts no job on this machine when %s", async (_, script, message) => {
    const programs = temporaryFolder("tiltyard programs ");
    if (script) writeFileSync(join(programs, "ray"), `#!/bin/sh\n${script}\n`, { mode: 0o755 });
    const PATH = `${programs}:/usr/bin:/bin`;
    const environment = { PATH, TILTYARD_CATALOG_URL: catalog.url };
    const { code, stderr } = await run(["run", "--local", "--", "true"], environment);
    expect([code, stderr]).toEqual([1, expect.stringMatching(message)]);
  });

  test("starts a catalog at a free port for a job on this machine, although another one has that of TILTYARD_PORT", async () => {
    const programs = temporaryFolder("tiltyard programs ");
    writeFileSync(join(programs, "ray"), "#!/bin/sh\nexit 7\n", { mode: 0o755 });
    const { stderr } = await run(["run", "--local", "--", "true"], {
      PATH: `${programs}:/usr/bin:/bin`,
      TILTYARD_DATA_DIR: temporaryFolder("tiltyard data "),
      TILTYARD_PORT: new URL(catalog.url).port,
      TILTYARD_CATALOG_URL: "",
    });
    expect(stderr).toContain("the ray on the PATH does not run");
  });

  test("looks at the catalog of a stack through the API server, with the stack's key", async () => {
    const outputs = join(folder, "stack with a catalog.json");
    const selector = { a: "b" };
    const selectors = { headNodeSelector: selector, workerCpuNodeSelector: selector, workerGpuNodeSelector: selector };
    const ray = { rayVersion: "2.60.0", rayImage: "ray", serviceAccount: "ray", namespace: "lancedb" };
    const place = { variant: "existing", clusterName: "x", configMethod: "LOCAL", bucketUri: "s3://b" };
    const reached = { catalogService: "tiltyard-catalog", catalogApiKey: catalog.adminKey };
    writeFileSync(outputs, JSON.stringify({ ...selectors, ...ray, ...place, ...reached }));
    const labels = { "app.kubernetes.io/name": "tiltyard-catalog" };
    server.pods = [{ metadata: { name: "tiltyard-catalog-0", labels }, status: { phase: "Running" } }];
    server.forwardTo = Number(new URL(catalog.url).port);
    const examine = async (key: string) => {
      const args = ["doctor", "--json", "--stack-outputs", outputs];
      const findings: Finding[] = JSON.parse((await run(args, { TILTYARD_API_KEY: key })).stdout);
      const resultOf = (name: string) => findings.find(({ check }) => check === name)?.result;
      return [resultOf("catalog is ready"), resultOf("key of the catalog")];
    };
    expect(await examine("")).toEqual(["ok", "ok"]);
    expect(await examine("tiltyard_wrong")).toEqual(["ok", "failed"]);
    server.pods = [];
    const { stdout } = await run(["doctor", "--json", "--stack-outputs", outputs]);
    expect(JSON.parse(stdout)).toContainEqual({
      check: "catalog is ready",
      result: "failed",
      detail: "no pod of the catalog answers in the namespace lancedb",
      advice: "kubectl logs --namespace lancedb -l app.kubernetes.io/name=tiltyard-catalog",
    });
  });

  describe("doctor", () => {
    const bare = { KUBECONFIG: "", HOME: temporaryFolder("tiltyard home "), TILTYARD_PORT: "1" };
    const doctor = async (environment: Record<string, string>, ...args: readonly string[]) => {
      const { code, stdout } = await run(["doctor", "--json", "--no-pod", ...args], { ...bare, ...environment });
      const findings: readonly Finding[] = JSON.parse(stdout);
      return { code, findings: Object.fromEntries(findings.map(({ check, ...finding }) => [check, finding])) };
    };

    test("skips Kubernetes without a kubeconfig, and the catalog when none runs on this machine", async () => {
      const { code, findings } = await doctor({});
      expect(code).toBe(0);
      expect(findings.Kubernetes).toMatchObject({ result: "skipped", detail: "no kubeconfig" });
      expect(findings.namespace).toBeUndefined();
      expect(findings["catalog is ready"]).toMatchObject({
        result: "skipped",
        detail: "no catalog was named, and no Tiltyard catalog answers at http://127.0.0.1:1",
      });
    });

    test("fails without a kubeconfig when a cluster was named", async () => {
      const { code, findings } = await doctor({}, "--namespace", "lancedb");
      expect([code, findings.Kubernetes?.result]).toEqual([5, "failed"]);
    });

    test("checks the catalog and the key without Kubernetes", async () => {
      const url = { TILTYARD_CATALOG_URL: catalog.url };
      const { code, findings } = await doctor({ ...url, TILTYARD_API_KEY: catalog.adminKey });
      expect([code, findings["catalog is ready"], findings["key of the catalog"]]).toEqual([
        0,
        { result: "ok", detail: catalog.url },
        { result: "ok", detail: "it belongs to bootstrap" },
      ]);
      expect(findings["runner of jobs"]).toEqual({ result: "ok", detail: "no job waits for a runner" });
      const refused = await doctor({ ...url, TILTYARD_API_KEY: "wrong" });
      expect([refused.code, refused.findings["key of the catalog"]?.result]).toEqual([5, "failed"]);
    });

    test("reports the Python and the Ray of this machine", async () => {
      const programs = temporaryFolder("tiltyard programs ");
      const install = (name: string, output: string) =>
        writeFileSync(join(programs, name), `#!/bin/sh\necho ${output}\n`, { mode: 0o755 });
      install("python3", "3.12.1");
      install("ray", "ray, version 2.60.0");
      const present = await doctor({ PATH: programs });
      expect(present.findings["Python on this machine"]).toEqual({ result: "ok", detail: "3.12.1" });
      expect(present.findings["Ray on this machine"]).toEqual({ result: "ok", detail: "2.60.0" });
      const missing = await doctor({ PATH: temporaryFolder("tiltyard programs ") });
      expect(missing.code).toBe(0);
      expect(missing.findings["Python on this machine"]?.result).toBe("warning");
      expect(missing.findings["Ray on this machine"]?.detail).toContain("ray is not on the PATH");
    });
  });

  test("exits with 1 when something does not work", async () => {
    server.failNext = [403];
    const { code, stderr } = await tiltyard("run", "-f", file, "--", "x");
    expect([code, stderr]).toEqual([1, expect.stringContaining("request membership in clientPrincipals of the stack")]);
    expect(stderr).not.toContain("    at ");
  });

  test("ends its process with the exit code", async () => {
    const { code, stderr } = await start(["cluster", "lists"]).finished;
    expect([code, stderr]).toEqual([2, expect.stringContaining("unknown command 'lists'")]);
  });

  test.each([[["--help"]], [["run", "--help"]], [["ray", "job", "submit", "--help"]], [["--version"]]])(
    "exits with 0 for %j",
    async (args) => {
      expect((await tiltyard(...args)).code).toBe(0);
    },
  );

  test("serve stops in order when a supervisor signals the whole process group", async () => {
    const data = { TILTYARD_DATA_DIR: temporaryFolder("tiltyard command "), TILTYARD_PORT: "0" };
    const { child, printed, finished } = start(["serve"], data);
    await printed("curl");
    const { pid = 0 } = child;
    for (const each of [...childrenOf(pid), pid]) process.kill(each, "SIGTERM");
    const { code, stdout } = await finished;
    expect([code, stdout]).toEqual([0, expect.stringContaining('"msg":"stopped"')]);
  });

  test("hands the commands of the catalog to its program with their options", async () => {
    expect((await start(["backup", "--help"]).finished).stdout).toContain("Usage: tiltyard-catalog backup");
  });

  test.each(leavesOf(tiltyardProgram()))("%s receives each of its options, none of which a parent accepts", (path) => {
    const { options } = leafAt(tiltyardProgram(), path);
    const received = options.map(({ long, short }) => long ?? short ?? "").filter((flag) => parsedBy(path, flag));
    expect(received).toEqual(options.map(({ long, short }) => long ?? short));
  });

  test.each([
    ["tiltyard cluster re", "reap"],
    ["tiltyard tables describe prod --pro", "--profile"],
    ["tiltyard tables list --url http://localhost --all", "--all-namespaces"],
  ])("completes %s in bash", async (line, completed) => {
    const { stdout } = await tiltyard("completion", "bash");
    const program = `${stdout}\nCOMP_WORDS=(${line}); COMP_CWORD=$((\${#COMP_WORDS[@]} - 1)); _tiltyard; echo "\${COMPREPLY[@]}"`;
    const { execFileSync } = await import("node:child_process");
    expect(execFileSync("bash", ["-c", program]).toString()).toBe(`${completed}\n`);
  });
});

test("completes commands and options in fish", async () => {
  const { stdout } = await tiltyard("completion", "fish");
  expect(stdout).toContain("\n        set path 'cluster'\n        set words up list down reap help --help\n");
  expect(stdout).toContain("complete -c tiltyard -a '(__tiltyard_words)'");
});

describe("the examples", () => {
  const selector = { "example.com/node": "true" };
  const outputs = join(folder, "outputs.json");
  writeFileSync(
    outputs,
    JSON.stringify({
      variant: "existing",
      clusterName: "lancedb",
      configMethod: "LOCAL",
      namespace: "lancedb",
      serviceAccount: "ray-pods",
      headNodeSelector: selector,
      workerCpuNodeSelector: selector,
      workerGpuNodeSelector: selector,
      rayVersion: "2.60.0",
      rayImage: "example.com/ray:1",
      bucketUri: "s3://tables",
    }),
  );

  const onStack = ["-f", resolve("examples/cluster.yaml"), "--stack-outputs", outputs, "-w", resolve("examples")];
  test.each([
    ["the file", () => tiltyard("run", ...onStack, "--", "python", "backfill.py")],
    [
      "the program",
      () => startProgram(["examples/embeddings.ts", outputs], { KUBECONFIG: server.kubeConfigFile }).finished,
    ],
  ])("run as they stand on a stack: %s", async (_, runExample) => {
    let made: string | undefined;
    const { onCreate } = server;
    server.onCreate = (cluster) => {
      made = cluster.spec.headGroupSpec.template.spec.serviceAccountName;
      onCreate(cluster);
    };
    const { code, stdout } = await runExample();
    expect([code, stdout, made]).toEqual([0, "done\n", "ray-pods"]);
    expect([...dashboard.jobs.values()].map((job) => job.entrypoint)).toEqual(["python backfill.py"]);
    expect([server.clusters.size, dashboard.packages.size]).toEqual([0, 1]);
  });
});

describe("tiltyard cluster", () => {
  test("creates a cluster that stays, lists it with its owner, and deletes it", async () => {
    const up = await tiltyard("cluster", "up", "-f", file, "--ttl", "2h", "--json");
    expect(JSON.parse(up.stdout)).toMatchObject({ name: "embeddings", namespace: "lancedb" });
    expect(up.stderr).toMatch(/^creating the Ray cluster embeddings in lancedb\nembeddings \[/);
    const [listed] = JSON.parse((await tiltyard("cluster", "list", "--json")).stdout);
    expect(listed).toMatchObject({
      name: "embeddings",
      owner: expect.stringContaining("process"),
      lease: expect.any(String),
    });
    expect((await tiltyard("cluster", "reap", "--json")).stdout).toBe("[]\n");
    const down = await tiltyard("cluster", "down", "embedings", "embeddings");
    expect([down.code, down.stdout]).toEqual([1, "deleted embeddings\n"]);
    expect(down.stderr).toContain("the namespace lancedb has no RayCluster embedings");
    expect(server.clusters.size).toBe(0);
  });

  test("creates a cluster with a lease by the clock of the API server, which the reaper uses", async () => {
    server.now = () => Date.parse("2020-01-01T12:00:00Z");
    const up = await tiltyard("cluster", "up", "-f", file, "--ttl", "2h", "--json");
    expect(JSON.parse(up.stdout)).toMatchObject({ leaseUntil: "2020-01-01T14:00:00.000Z" });
    expect((await tiltyard("cluster", "reap", "--json")).stdout).toBe("[]\n");
    server.now = () => Date.parse("2020-01-01T14:00:01Z");
    expect(JSON.parse((await tiltyard("cluster", "reap", "--json")).stdout)).toMatchObject([{ name: "embeddings" }]);
  });

  test("deletes the cluster when the API server does not report its time for the lease", async () => {
    server.forbids = ({ method, url }) =>
      method === "GET" && url?.includes("limit=1") === true && server.clusters.size > 0;
    const { code, stderr } = await tiltyard("cluster", "up", "-f", file);
    expect([code, stderr]).toEqual([
      1,
      expect.stringContaining("cannot read the time of the API server: told to fail"),
    ]);
    expect(server.clusters.size).toBe(0);
  });

  test("is deleted when it is interrupted before it is up", async () => {
    server.onCreate = () => {};
    const program = startHere(["cluster", "up", "-f", file]);
    await program.printed("0 of 2 pods ready");
    process.emit("SIGINT");
    expect((await program.finished).code).toBe(130);
    expect(server.clusters.size).toBe(0);
  });
});

describe("tiltyard ray job", () => {
  test("submits to an existing cluster, follows, lists and stops", async () => {
    server.pods.push(rayPod("embeddings", "head"));
    const submit = "ray job submit -c embeddings --no-wait --submission-id mine -- echo hi".split(" ");
    expect((await run(submit)).stdout).toBe("mine\n");
    const address = ["--address", dashboard.url];
    expect((await tiltyard("ray", "job", "logs", ...address, "--follow", "mine")).stdout).toBe("done\n");
    expect((await tiltyard("ray", "job", "logs", ...address, "--json", "mine")).stdout).toBe('["done"]\n');
    expect((await tiltyard("ray", "job", "logs", ...address, "--json", "--follow", "mine")).code).toBe(2);
    expect((await tiltyard("ray", "job", "list", ...address)).stdout).toMatch(
      /^ID +STATUS +STARTED +COMMAND\nmine +SUCCEEDED/,
    );
    expect((await tiltyard("ray", "job", "stop", ...address, "mine")).code).toBe(0);
    expect((await tiltyard("ray", "job", "status", ...address, "mine")).code).toBe(4);
  });

  test("leaves the transaction of a job that is not waited for as it is", async () => {
    dashboard.script = () => ({ logs: [""], statuses: ["FAILED"] });
    const table = await declareTable(catalog);
    await commit(catalog, table, 1);
    const id = (await catalog.call("openJob", { id: table.id, column: "c" })).body.job_id;
    const args = ["ray", "job", "submit", "--address", dashboard.url, "--no-wait", "--transaction", id, "--", "true"];
    const environment = { TILTYARD_CATALOG_URL: catalog.url, TILTYARD_API_KEY: catalog.adminKey };
    const { code, stdout } = await run(args, environment);
    expect([code, stdout]).toEqual([0, expect.stringMatching(/^raysubmit_\w+\n$/)]);
    const { body } = await catalog.call("describeTransaction", { id: id.split("$") });
    expect(body).toMatchObject({ status: "Running", properties: { ray_job_id: stdout.trim() } });
  });

  test("ends with the exit code of an interruption when it is interrupted while it follows", async () => {
    dashboard.jobs.set("mine", { entrypoint: "x", runtime_env: {}, logs: ["begun\n"], statuses: ["RUNNING"] });
    const program = startHere(["ray", "job", "logs", "--address", dashboard.url, "--follow", "mine"]);
    await expect.poll(() => program.stdout()).toContain("begun");
    process.emit("SIGINT");
    expect(await program.finished).toMatchObject({ code: 130, stderr: expect.not.stringContaining("aborted") });
  });

  test("reads the token of a named Ray cluster, whose port is forwarded", async () => {
    expect((await tiltyard("cluster", "up", "-f", file)).code).toBe(0);
    dashboard.token = "token of embeddings";
    const { code, stdout, stderr } = await tiltyard("ray", "job", "submit", "-c", "embeddings", "--", "true");
    expect([code, stdout]).toEqual([0, "done\n"]);
    expect(stderr).not.toContain("token");
    dashboard.token = "token of another";
    const refused = await tiltyard("ray", "job", "list", "-c", "embeddings");
    expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining("Ray requires a token")]);
  });

  test("names the command that lists clusters when the cluster is unknown", async () => {
    const { code, stderr } = await tiltyard("ray", "job", "list", "-c", "nothing");
    expect([code, stderr]).toEqual([1, expect.stringContaining("See: tiltyard cluster list")]);
  });
});
