import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { createCatalogClient } from "../../client/index.ts";
import { commit, declareTable, useCatalog } from "../support/catalog.ts";
import { startProgram } from "../support/process.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { pathWithPython } from "./servers.ts";

const folder = temporaryFolder("tiltyard local ");

function runLocal(args: readonly string[], environment: Readonly<Record<string, string>> = {}) {
  return startProgram(["client/main.ts", ...args], {
    PATH: pathWithPython(),
    TILTYARD_DATA_DIR: join(folder, "data"),
    ...environment,
  });
}

/** The timeout, because each run starts a Ray. */
const timeout = 400_000;

describe("tiltyard run --local", { timeout }, () => {
  test("leaves nothing behind when it is killed", async () => {
    const program = runLocal(["run", "--local", "--", "sh", "-c", "echo begun; sleep 1000"]);
    const [, dashboard = ""] = /dashboard: (\S+);/.exec(await program.printed("job ")) ?? [];
    expect((await fetch(dashboard)).status).toBeLessThan(500);
    program.child.kill("SIGKILL");
    await program.finished;
    await expect
      .poll(
        () =>
          fetch(dashboard).then(
            () => "answers",
            () => "gone",
          ),
        { timeout: 60_000 },
      )
      .toBe("gone");
  });

  describe("with a catalog that is named", () => {
    const catalog = useCatalog();

    test("shows why a job failed, and exits with the job's code", async () => {
      const environment = { TILTYARD_CATALOG_URL: catalog.url, TILTYARD_API_KEY: catalog.adminKey };
      const table = await declareTable(catalog);
      await commit(catalog, table, 1);
      const failing = "import os; raise ValueError('no such film at ' + os.environ['TILTYARD_CATALOG_URL'])";
      const column = ["--table", table.id.join("$"), "--column", "c"];
      const { code, stdout, stderr } = await runLocal(
        ["run", "--local", "--json", ...column, "--", "python", "-c", failing],
        environment,
      ).finished;
      expect([code, stderr]).toEqual([3, expect.stringContaining("no such film")]);
      const id = JSON.parse(stdout).transaction_id.split("$");
      const client = createCatalogClient({ url: catalog.url, apiKey: catalog.adminKey });
      const { status, properties } = await client.describeTransaction({ id });
      expect(status).toBe("Failed");
      expect(properties.reason).toContain(`no such film at ${catalog.url}`);
    });
  });
});
