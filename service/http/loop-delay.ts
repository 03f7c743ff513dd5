import type { Log } from "../log.ts";

/** A request that holds the event loop for longer delays all others. */
const heldMaxMs = 200;
const beatEveryMs = 50;
const toldMax = 5;
const endedKept = 100;

/** What a log line says of a request that was under way while the event loop was held. */
export interface LoopRequest {
  readonly operation: string;
  readonly requestId: string | undefined;
  readonly bodyBytes: number;
}

/** Finds requests that hold the event loop. prom-client measures the delay itself. */
export interface LoopWatch extends Disposable {
  begin(request: LoopRequest): void;
  end(request: LoopRequest): void;
}

/**
 * Logs a line when the event loop was held, with the requests that were in progress. The one with the largest body comes
 * first: it is the most likely cause.
 */
export function watchLoop(log: Log): LoopWatch {
  const underWay = new Set<LoopRequest>();
  let ended: LoopRequest[] = [];
  let lastBeat = performance.now();
  const beats = setInterval(() => {
    const now = performance.now();
    const heldMs = now - lastBeat - beatEveryMs;
    // Without a request it was the start, or deferred work: the metric tells.
    if (heldMs > heldMaxMs && ended.length + underWay.size > 0) {
      const requests = [...ended, ...underWay].toSorted((one, other) => other.bodyBytes - one.bodyBytes);
      log.warn(
        {
          held_ms: Math.round(heldMs),
          requests: requests.slice(0, toldMax).map(({ operation, requestId, bodyBytes }) => ({
            operation,
            request_id: requestId,
            body_bytes: bodyBytes,
          })),
        },
        "the event loop was held",
      );
    }
    ended = [];
    lastBeat = now;
  }, beatEveryMs).unref();

  return {
    begin: (request) => underWay.add(request),
    end: (request) => {
      underWay.delete(request);
      if (ended.length < endedKept) ended.push(request);
    },
    [Symbol.dispose]: () => clearInterval(beats),
  };
}
