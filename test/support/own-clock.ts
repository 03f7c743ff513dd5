import type { Session, Store } from "../../service/store/store.ts";

/** Returns a store with the clock of the test process, which a test can replace, in place of that of its server. */
export function withOwnClock(store: Store): Store {
  const replaced = (session: Session): Session => ({ ...session, time: () => Date.now() });
  return {
    read: replaced(store.read),
    write: (work, options) => store.write((session) => work(replaced(session)), options),
    createLimiter: (options) => store.createLimiter(options),
    [Symbol.asyncDispose]: () => store[Symbol.asyncDispose](),
  };
}
