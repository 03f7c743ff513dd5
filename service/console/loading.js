import { useEffect, useLayoutEffect, useRef, useState } from "./libraries/hooks.js";
import { announce, html, loading, messageOf, problem } from "./view.js";

/** @typedef {import("./view.js").Children} Children */

/** The maximum number of empty pages that a list skips without a click. */
const emptyPagesMax = 20;
/** The longest pause between two calls of a service that does not respond. */
const pauseMaxMs = 60_000;

/** @param {string} title The title of the page in the browser. */
export function useTitle(title) {
  useLayoutEffect(() => {
    document.title = `${title} · Tiltyard`;
  }, [title]);
}

/**
 * Loads the result of a call when the component is first shown.
 *
 * @template Result
 * @param {(signal: AbortSignal) => Promise<Result>} load
 */
export function useLoaded(load) {
  const [turn, setTurn] = useState(0);
  const [state, setState] = useState(/** @type {{ result?: Result, error?: unknown }} */ ({}));
  useEffect(() => {
    const leaving = new AbortController();
    const show = (/** @type {typeof state} */ next) => leaving.signal.aborted || setState(next);
    setState({});
    load(leaving.signal).then(
      (result) => show({ result }),
      (error) => show({ error }),
    );
    return () => leaving.abort();
  }, [turn]);
  return { ...state, reload: () => setTurn(turn + 1) };
}

/**
 * Shows the loaded result, the progress of the load, or its error.
 *
 * @template Result
 * @param {{ result?: Result, error?: unknown, reload: () => void }} loaded
 * @param {(result: Result) => Children} show
 * @param {(error: unknown) => Children | undefined} [instead] Renders an expected error.
 */
export function shown({ result, error, reload }, show, instead) {
  if (error !== undefined) return instead?.(error) ?? problem(error, reload);
  return result === undefined ? loading() : show(result);
}

/**
 * Loads a list page by page; `items` is undefined until the first page is loaded.
 *
 * @template Item
 * @template Answer
 * @param {(page: { page_token: string | undefined }, signal: AbortSignal) => Promise<Answer & { page_token?: string | undefined }>} load
 * @param {(answer: Answer) => readonly Item[]} itemsOf
 */
export function usePages(load, itemsOf) {
  const first = /** @type {{ items?: readonly Item[], next?: string | undefined, error?: unknown }} */ ({});
  const [turn, setTurn] = useState(0);
  const [state, setState] = useState(first);
  const leaving = useRef(new AbortController());

  /** @param {string | undefined} page_token */
  async function read(page_token) {
    const { signal } = leaving.current;
    try {
      let page = await load({ page_token }, signal);
      for (let tries = 0; itemsOf(page).length === 0 && page.page_token && tries < emptyPagesMax; tries += 1)
        page = await load({ page_token: page.page_token }, signal);
      if (signal.aborted) return;
      if (page_token !== undefined) announce(`${itemsOf(page).length} more.`);
      setState(({ items = [] }) => ({ items: [...items, ...itemsOf(page)], next: page.page_token || undefined }));
    } catch (error) {
      if (!signal.aborted) setState((before) => ({ ...before, error }));
    }
  }

  useEffect(() => {
    leaving.current = new AbortController();
    setState(first);
    read(undefined);
    return () => leaving.current.abort();
  }, [turn]);

  return {
    ...state,
    /** @param {(items: readonly Item[]) => readonly Item[]} change */
    update: (change) => setState((before) => ({ ...before, items: change(before.items ?? []) })),
    more: () => {
      setState((before) => ({ ...before, error: undefined }));
      return read(state.next);
    },
    reload: () => setTurn(turn + 1),
  };
}

/**
 * Reads all pages of a map.
 *
 * @template Entry
 * @template Answer
 * @param {(page: { page_token: string | undefined }) => Promise<Answer & { page_token?: string | undefined }>} load
 * @param {(answer: Answer) => Readonly<Record<string, Entry>>} entriesOf
 */
export async function readAll(load, entriesOf) {
  let page = await load({ page_token: undefined });
  const found = { ...entriesOf(page) };
  while (page.page_token) {
    page = await load({ page_token: page.page_token });
    Object.assign(found, entriesOf(page));
  }
  return found;
}

/**
 * Shows a list that is loaded page by page, with a button for its next page.
 *
 * @template Item
 * @param {object} props
 * @param {ReturnType<typeof usePages<Item, object>>} props.pages
 * @param {(items: readonly Item[]) => Children} props.show
 * @param {() => Children} props.empty
 * @param {string} props.more
 */
export function Pages({ pages: { items, next, error, more, reload }, show, empty, more: text }) {
  const root = useRef(/** @type {HTMLElement | null} */ (null));
  /** The number of items when the keyboard requested the next page. */
  const before = useRef(/** @type {number | undefined} */ (undefined));
  const [isBusy, setBusy] = useState(false);
  useLayoutEffect(() => {
    // The pressed button may no longer exist, so the focus moves to the first of the new rows.
    const row = root.current?.querySelectorAll("tbody > tr, li")[before.current ?? -1];
    const target = row?.querySelector("a, button");
    if (target instanceof HTMLElement) target.focus();
    before.current = undefined;
  }, [items?.length]);
  async function onMore() {
    if (isBusy) return;
    before.current = items?.length;
    setBusy(true);
    await more();
    setBusy(false);
  }
  if (items === undefined) return error === undefined ? loading() : problem(error, reload);
  return html`<div ref=${root}>
    ${items.length === 0 && next === undefined ? empty() : items.length > 0 && show(items)}
    ${error !== undefined && problem(error, onMore)}
    ${next !== undefined && error === undefined && html`<button type="button" class="quiet more" aria-disabled=${isBusy} onClick=${onMore}>${text}</button>`}
  </div>`;
}

/**
 * Calls `work` repeatedly while the page is visible. After a failure, the pause doubles.
 *
 * @param {object} options
 * @param {number} options.everyMs
 * @param {boolean} [options.isOn]
 * @param {boolean} [options.isNow] Also calls `work` immediately.
 * @param {(signal: AbortSignal) => Promise<boolean>} options.work Returns whether another call is needed.
 * @returns {string} The current problem; empty without one.
 */
export function usePoll({ everyMs, isOn = true, isNow = false, work }) {
  const [wrong, setWrong] = useState("");
  const latest = useRef(work);
  latest.current = work;
  useEffect(() => {
    if (!isOn) return;
    const leaving = new AbortController();
    const { signal } = leaving;
    let pauseMs = everyMs;
    let isBusy = false;
    let isOver = false;
    /** @type {number | undefined} */
    let timer;

    async function tick() {
      clearTimeout(timer);
      if (signal.aborted || isOver || isBusy || document.hidden) return;
      isBusy = true;
      try {
        isOver = !(await latest.current(signal));
        pauseMs = everyMs;
        setWrong("");
      } catch (error) {
        if (signal.aborted) return;
        pauseMs = Math.min(2 * pauseMs, pauseMaxMs);
        setWrong(`Not up to date: ${messageOf(error)}`);
      }
      isBusy = false;
      wait();
    }
    function wait() {
      if (!signal.aborted && !isOver) timer = setTimeout(tick, pauseMs);
    }

    document.addEventListener("visibilitychange", tick, { signal });
    if (isNow) tick();
    else wait();
    return () => {
      leaving.abort();
      clearTimeout(timer);
      setWrong("");
    };
  }, [isOn]);
  return wrong;
}

/** Runs the action of a button, once at a time. */
export function useAction() {
  const [state, setState] = useState({ isBusy: false, failed: "" });
  /** @param {() => Promise<unknown>} work */
  async function run(work) {
    if (state.isBusy) return;
    setState({ isBusy: true, failed: "" });
    try {
      await work();
      setState({ isBusy: false, failed: "" });
    } catch (error) {
      setState({ isBusy: false, failed: messageOf(error) });
    }
  }
  return { ...state, run };
}
