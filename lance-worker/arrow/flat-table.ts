/**
 * The number of times that all bytes of a buffer may be read. References to one table multiply the work for it: 40 tables
 * that each refer twice to the next one are a tree of 2^40.
 */
const readingsMax = 8;
const referenceBytes = 4;

/**
 * A table of FlatBuffers, Arrow's format for the metadata of its files and streams. Fields are identified by their
 * index in Arrow's schemas (Schema.fbs, Message.fbs, File.fbs); an absent field has its default. Invalid bytes throw
 * RangeError, like Node's buffers.
 */
export class FlatTable {
  readonly #bytes: Buffer;
  readonly #at: number;
  /** The number of bytes behind references that all tables of the buffer together may still read. */
  readonly #left: { bytes: number };

  private constructor(bytes: Buffer, at: number, left: { bytes: number }) {
    this.#bytes = bytes;
    this.#at = at;
    this.#left = left;
  }

  static root(bytes: Buffer): FlatTable {
    return new FlatTable(bytes, bytes.readUInt32LE(0), { bytes: readingsMax * bytes.length });
  }

  /** The start of the table. */
  get position(): number {
    return this.#at;
  }

  byte(index: number, absent = 0): number {
    return this.#read(index, (at) => this.#bytes.readUInt8(at)) ?? absent;
  }

  short(index: number, absent = 0): number {
    return this.#read(index, (at) => this.#bytes.readInt16LE(at)) ?? absent;
  }

  int(index: number, absent = 0): number {
    return this.#read(index, (at) => this.#bytes.readInt32LE(at)) ?? absent;
  }

  long(index: number): number {
    return this.#read(index, (at) => Number(this.#bytes.readBigInt64LE(at))) ?? 0;
  }

  text(index: number): string | undefined {
    return this.#read(index, (at) => {
      const start = this.#follow(at);
      const length = this.#bytes.readUInt32LE(start);
      this.#spend(length);
      return this.#bytes.toString("utf8", start + 4, start + 4 + length);
    });
  }

  /** Returns the position of the reference to a text, table or vector, and that of its target. */
  reference(index: number): { readonly slot: number; readonly target: number } | undefined {
    return this.#read(index, (slot) => ({ slot, target: this.#follow(slot) }));
  }

  table(index: number): FlatTable | undefined {
    return this.#read(index, (at) => this.#tableAt(at));
  }

  tables(index: number): FlatTable[] {
    return this.slots(index).map((at) => this.#tableAt(at));
  }

  /** Returns the positions of the references to the tables of a vector. */
  slots(index: number): number[] {
    return this.#vector(index, 4);
  }

  /** Returns the elements of a vector of structs with a fixed size. */
  structs(index: number, size: number): Buffer[] {
    return this.#vector(index, size).map((at) => this.#bytes.subarray(at, at + size));
  }

  #vector(index: number, size: number): number[] {
    const positions = this.#read(index, (at) => {
      const start = this.#follow(at);
      const length = this.#bytes.readUInt32LE(start);
      if (length * size > this.#bytes.length) throw new RangeError("a vector is longer than its buffer");
      this.#spend(length * size);
      return Array.from({ length }, (_, item) => start + 4 + item * size);
    });
    return positions ?? [];
  }

  #tableAt(slot: number): FlatTable {
    return new FlatTable(this.#bytes, this.#follow(slot), this.#left);
  }

  #follow(at: number): number {
    this.#spend(referenceBytes);
    return at + this.#bytes.readUInt32LE(at);
  }

  #spend(bytes: number): void {
    this.#left.bytes -= bytes;
    if (this.#left.bytes < 0) throw new RangeError("references to the same bytes multiply them");
  }

  #read<Value>(index: number, read: (at: number) => Value): Value | undefined {
    const layout = this.#at - this.#bytes.readInt32LE(this.#at);
    const entry = 4 + 2 * index;
    if (entry >= this.#bytes.readUInt16LE(layout)) return undefined;
    const offset = this.#bytes.readUInt16LE(layout + entry);
    return offset === 0 ? undefined : read(this.#at + offset);
  }
}
