/** The longest pause between two calls of a service that gives no answer. */
const pauseMaxMs = 60_000;

/**
 * Calls `work` again and again, while the page can be seen. After a failure the pause doubles.
 *
 * @param {object} options
 * @param {AbortSignal} options.signal Ends it.
 * @param {number} options.everyMs
 * @param {() => Promise<boolean>} options.work Answers whether there is more to come.
 * @param {(problem: string) => void} options.tell What is wrong now; empty when nothing is.
 * @returns {{ now: () => void, stop: () => void }} `now` goes on at once, also after `stop`.
 */
export function poll({ signal, everyMs, work, tell }) {
  let pauseMs = everyMs;
  let isBusy = false;
  let isStopped = false;
  /** @type {number | undefined} */
  let timer;

  function wait() {
    clearTimeout(timer);
    if (!signal.aborted && !isStopped) timer = setTimeout(tick, pauseMs);
  }

  async function tick() {
    clearTimeout(timer);
    if (signal.aborted || isStopped || isBusy || document.hidden) return;
    isBusy = true;
    try {
      isStopped = !(await work());
      pauseMs = everyMs;
      tell("");
    } catch (error) {
      if (signal.aborted) return;
      pauseMs = Math.min(2 * pauseMs, pauseMaxMs);
      tell(`Not up to date: ${/** @type {Error} */ (error).message}`);
    } finally {
      isBusy = false;
    }
    wait();
  }

  document.addEventListener("visibilitychange", tick, { signal });
  signal.addEventListener("abort", () => clearTimeout(timer));
  wait();
  return {
    now() {
      isStopped = false;
      pauseMs = everyMs;
      tick();
    },
    stop() {
      isStopped = true;
      clearTimeout(timer);
    },
  };
}
