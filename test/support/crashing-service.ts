/**
 * The service, killed by SIGKILL at one step of a commit: the step is the argument, and the
 * commit is the first whose manifest was staged under a name that has `crash` in it.
 */
import { readConfig } from "../../service/config.ts";
import { createLog } from "../../service/log.ts";
import { startService } from "../../service/start.ts";
import type { ObjectStore } from "../../service/storage/object-store.ts";
import type { Store } from "../../service/store/store.ts";
import type { CommitStep } from "./commit-steps.ts";

const crashAt = process.argv[2] as CommitStep;
let armed = false;
let writes = 0;

function pass(step: CommitStep): void {
  if (armed && step === crashAt) process.kill(process.pid, "SIGKILL");
}

async function around<Result>(step: "check" | "insert" | "copy" | "delete" | "finish", work: () => Promise<Result>) {
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
    copy: (from, to) => around("copy", () => store.copy(from, to)),
    delete: (key) => around("delete", () => store.delete(key)),
  };
}

function crashingStore(store: Store): Store {
  return {
    read: store.read,
    write: (work, options) => {
      if (armed) writes += 1;
      return around(writes <= 1 ? "insert" : "finish", () => store.write(work, options));
    },
    exclusively: (key, work) => store.exclusively(key, work),
    createLimiter: (options) => store.createLimiter(options),
    [Symbol.asyncDispose]: () => store[Symbol.asyncDispose](),
  };
}

const config = readConfig(process.env);
const service = await startService(config, createLog("silent"), {
  wrapStore: crashingStore,
  wrapStorage: (storage) => ({ at: async (location) => crashingStorage(await storage.at(location)) }),
});
process.stderr.write(`listening at ${service.url}\n`);
