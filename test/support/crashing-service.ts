/**
 * The service, killed by SIGKILL at one step of a commit: the step is the argument, and the
 * commit is the first whose manifest was staged under a name that has `crash` in it.
 */
import { flushCompileCache } from "node:module";
import { readConfig } from "../../service/config.ts";
import { createLog } from "../../service/log.ts";
import { startService } from "../../service/start.ts";
import type { ObjectStore } from "../../service/storage/object-store.ts";
import type { Store } from "../../service/store/store.ts";
import type { CommitStep } from "./commit-steps.ts";
import { watchedStore } from "./watched-store.ts";

const crashAt = process.argv[2] as CommitStep;
let armed = false;

function pass(step: CommitStep): void {
  if (armed && step === crashAt) process.kill(process.pid, "SIGKILL");
}

async function around<Result>(step: "check" | "copy" | "delete", work: () => Promise<Result>) {
  pass(`before ${step}`);
  const result = await work();
  pass(`after ${step}`);
  return result;
}

function crashingStorage(store: ObjectStore): ObjectStore {
  return {
    ...store,
    persist: (key) => {
      armed ||= key.includes("crash");
      return around("check", () => store.persist(key));
    },
    copy: (...args) => around("copy", () => store.copy(...args)),
    delete: (...args) => around("delete", () => store.delete(...args)),
  };
}

/** Tells the step of a commit by what is written: other work of the service writes too. */
function stepOf(sql: string): "insert" | "finish" | undefined {
  if (sql.startsWith('insert into "table_versions"')) return "insert";
  return sql.startsWith('update "table_versions" set "finished"') ? "finish" : undefined;
}

function crashingStore(store: Store): Store {
  return watchedStore(store, {
    onStatement: (sql) => {
      const step = stepOf(sql);
      if (step !== undefined) pass(`before ${step}`);
    },
    onCommit: (statements) => {
      const step = statements.map(stepOf).find((each) => each !== undefined);
      if (step !== undefined) pass(`after ${step}`);
    },
  });
}

const config = readConfig(process.env);
const service = await startService(config, createLog("silent"), {
  wrapStore: crashingStore,
  wrapStorage: (storage) => ({ at: async (location) => crashingStorage(await storage.at(location)) }),
});
// Killed, it keeps nothing of what Node compiled for those that come after it.
flushCompileCache();
process.stderr.write(`listening at ${service.url}\n`);
