import { CatalogError } from "@tiltyard/protocol";
import type { CompiledQuery } from "kysely";
import { postgres } from "./dialect.ts";
import { createQueries } from "./queries.ts";
import type { Limiter, Session, Store, WriteOptions } from "./store.ts";

/**
 * Opens a PostgreSQL store whose database may be unavailable when the service starts. Until the database is available,
 * every method of the store throws CatalogError ServiceUnavailable, and each call tries to open it again.
 *
 * @param open Opens and migrates the database.
 * @param onAway Receives the reason of a transient failure.
 * @throws Error for a permanent failure.
 */
export async function openSoonerOrLater(
  open: () => Promise<Store>,
  onAway: (reason: CatalogError) => void,
): Promise<Store> {
  try {
    return await open();
  } catch (error) {
    if (!(error instanceof CatalogError) || error.kind !== "ServiceUnavailable") throw error;
    onAway(error);
    return new LateStore(open);
  }
}

class LateStore implements Store {
  readonly read: Session = {
    db: createQueries("postgres", async <Row>(query: CompiledQuery) => {
      return (await this.#opened()).read.db.executeQuery(query as CompiledQuery<Row>);
    }),
    now: postgres.now,
  };
  readonly #open: () => Promise<Store>;
  /** The store or the attempt to open it, which concurrent calls share. */
  #opening: Promise<Store> | undefined;

  constructor(open: () => Promise<Store>) {
    this.#open = open;
  }

  async cached<Result extends object>(key: string, read: () => Promise<Result>): Promise<Result> {
    return (await this.#opened()).cached(key, read);
  }

  async write<Result>(work: (session: Session) => Promise<Result>, options?: WriteOptions): Promise<Result> {
    return (await this.#opened()).write(work, options);
  }

  createLimiter(options: { readonly points: number; readonly durationSeconds: number }): Limiter {
    let limiter: Limiter | undefined;
    return {
      consume: async (key) => {
        limiter ??= (await this.#opened()).createLimiter(options);
        return limiter.consume(key);
      },
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const store = await this.#opening?.catch(() => undefined);
    await store?.[Symbol.asyncDispose]();
  }

  async #opened(): Promise<Store> {
    this.#opening ??= this.#open();
    const opening = this.#opening;
    try {
      return await opening;
    } catch (cause) {
      if (this.#opening === opening) this.#opening = undefined;
      throw new CatalogError("ServiceUnavailable", "The catalog's database cannot be used now; try again.", { cause });
    }
  }
}
