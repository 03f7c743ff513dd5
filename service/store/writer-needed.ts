/** Thrown where a process that only reads would have to change something: the one that writes carries out the request. */
export class WriterNeeded extends Error {
  override readonly name = "WriterNeeded";

  constructor() {
    super("this process only reads the catalog's database");
  }
}
