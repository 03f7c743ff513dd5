/**
 * The service, which kills itself with SIGKILL at the step of its argument, in the first commit whose staged manifest has `crash` in
 * its name.
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
    persist: (key, bytesMax) => {
      armed ||= key.includes("crash");
      return around("check", () => store.persist(key, bytesMax));
    },
    copy: (...args) => around("copy", () => store.copy(...args)),
    delete: (...args) => around("delete", () => store.delete(...args)),
  };
}

/** Recognizes the step of a commit by its SQL, because other work of the service also writes. */
function stepOf(sql: string): "insert" | "finish" | undefined {
  if (sql.startsWith('insert into "table_versions"')) return "insert";
  return /^update "table_versions" set "state" = [^"]+ where \("table_id"/.test(sql) ? "finish" : undefined;
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
// A killed process saves no compiled code for the next one.
flushCompileCache();
process.stderr.write(`listening at ${service.url}\n`);
