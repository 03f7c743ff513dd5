/** The largest piece of a body that counts as progress. */
const pieceBytes = 256 * 1024;

/** The longest time of a timer in Node and in browsers. A longer one would expire immediately. */
const timerMsMax = 2 ** 31 - 1;

/** Aborts a request after a time without any sent or received byte, instead of after a total time. */
export class SilenceLimit implements Disposable {
  readonly #controller = new AbortController();
  readonly #limitMs: number;
  #timer: NodeJS.Timeout | undefined;

  constructor(limitMs: number) {
    this.#limitMs = limitMs;
    this.#restart();
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Returns the same bytes in pieces, each of which restarts the timer. */
  passing(body: Uint8Array | ReadableStream<Uint8Array>): ReadableStream<Uint8Array> {
    const stream = body instanceof Uint8Array ? ReadableStream.from(inPieces(body)) : body;
    return stream.pipeThrough(
      new TransformStream<Uint8Array, Uint8Array>({
        transform: (piece, controller) => {
          this.#restart();
          controller.enqueue(piece);
        },
      }),
    );
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer);
  }

  #restart(): void {
    clearTimeout(this.#timer);
    const reason = () =>
      new DOMException(`timeout: no data was sent or received for ${this.#limitMs} ms`, "TimeoutError");
    this.#timer = setTimeout(() => this.#controller.abort(reason()), Math.min(this.#limitMs, timerMsMax));
  }
}

function* inPieces(bytes: Uint8Array): Generator<Uint8Array> {
  for (let from = 0; from < bytes.length; from += pieceBytes) yield bytes.subarray(from, from + pieceBytes);
}
