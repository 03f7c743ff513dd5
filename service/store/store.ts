import type { Statement } from "./statement.ts";

/** Runs statements, each with its values. */
export interface Session {
  all<Parameters extends object, Row>(statement: Statement<Parameters, Row>, parameters: Parameters): Promise<Row[]>;
  first<Parameters extends object, Row>(
    statement: Statement<Parameters, Row>,
    parameters: Parameters,
  ): Promise<Row | undefined>;
  /** @returns How many rows were changed. */
  run<Parameters extends object>(statement: Statement<Parameters, unknown>, parameters: Parameters): Promise<number>;
}

/** The catalog's database. Reading sees what was committed before it began. */
export interface Store extends AsyncDisposable {
  readonly read: Session;
  /**
   * Runs `work` in a transaction and resolves when what it did is durable. When `work`
   * throws, nothing of it stays and its error is thrown. `work` may do nothing but use the
   * session: it shares its commit with others and may be run again.
   *
   * @throws CatalogError ServiceUnavailable when the database cannot commit.
   */
  write<Result>(work: (session: Session) => Promise<Result>): Promise<Result>;
  /** Writes a consistent copy of the database to a file while the store is in use. */
  backup(file: string): Promise<void>;
}
