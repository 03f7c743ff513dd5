import { type KyselyPlugin, SelectQueryNode } from "kysely";
import type { Session, Store } from "../../service/store/store.ts";

/** Opens a store that reports each changing SQL statement and each durable commit. */
export function watchedStore(
  store: Store,
  {
    onStatement = () => {},
    onCommit,
  }: { onStatement?: (sql: string) => void; onCommit: (sql: readonly string[]) => void },
): Store {
  return {
    read: store.read,
    write: async (work, options) => {
      let statements: string[] = [];
      const result = await store.write((session) => {
        statements = [];
        const seen = (sql: string) => {
          statements.push(sql);
          onStatement(sql);
        };
        return work(watchedSession(session, seen));
      }, options);
      onCommit(statements);
      return result;
    },
    createLimiter: (options) => store.createLimiter(options),
    [Symbol.asyncDispose]: () => store[Symbol.asyncDispose](),
  };
}

function watchedSession(session: Session, seen: (sql: string) => void): Session {
  const plugin: KyselyPlugin = {
    transformQuery: ({ node, queryId }) => {
      if (!SelectQueryNode.is(node)) seen(session.db.getExecutor().compileQuery(node, queryId).sql);
      return node;
    },
    transformResult: async ({ result }) => result,
  };
  return { ...session, db: session.db.withPlugin(plugin) };
}
