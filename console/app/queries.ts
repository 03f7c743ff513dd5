import {
  QueryClient,
  type UseQueryOptions,
  useInfiniteQuery,
  useMutation,
  useQuery,
  useQueryClient,
} from "@tanstack/preact-query";
import { delimiterFor, type Identifier } from "@tiltyard/protocol";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { type AnswerTo, ApiError, call, type JobSummary, type OperationName, type RequestTo } from "./api.ts";
import { type Caller, may } from "./caller.ts";
import { announce, messageOf, readForm } from "./view.tsx";

/** The maximum number of empty pages that a list skips without a click. */
const emptyPagesMax = 20;
/** The longest pause between two calls of a service that does not respond. */
const pauseMaxMs = 60_000;

const isOutage = (_failures: number, error: unknown) =>
  error instanceof ApiError && (error.status === 0 || error.status >= 502);
/** Returns a pause that doubles with each failure. */
const pauseAfter = (firstMs: number) => (failures: number) => Math.min(firstMs * 2 ** failures, pauseMaxMs);

export const createQueryClient = () =>
  new QueryClient({
    defaultOptions: {
      // A page recovers by itself after an outage.
      queries: { retry: isOutage, retryDelay: pauseAfter(1_000), networkMode: "always", refetchOnWindowFocus: false },
      mutations: { networkMode: "always" },
    },
  });

/** @param title The title of the page in the browser. */
export function useTitle(title: string): void {
  useLayoutEffect(() => {
    document.title = `${title} · Tiltyard`;
  }, [title]);
}

/**
 * Returns options that repeat a query while the page is visible. After a failure, the pause doubles, and the failure is
 * the query's `failureReason`.
 */
export function polling(everyMs: number) {
  return {
    refetchInterval: everyMs,
    refetchOnWindowFocus: "always",
    retry: true,
    retryDelay: pauseAfter(2 * everyMs),
  } as const;
}

/** Returns the current problem of a query whose earlier result is shown; empty without one. */
export const staleness = ({ failureReason }: { readonly failureReason: unknown }) =>
  failureReason == null ? "" : `Not up to date: ${messageOf(failureReason)}`;

/** Calls an operation that reads. */
export function useCall<Name extends OperationName>(
  name: Name,
  request: RequestTo<Name>,
  options: Omit<UseQueryOptions<AnswerTo<Name>>, "queryKey" | "queryFn"> = {},
) {
  return useQuery<AnswerTo<Name>>({
    queryKey: [name, request],
    queryFn: ({ signal }) => call(name, request, signal),
    ...options,
  });
}

const jobsOfTableMax = 200;

/** Lists the latest jobs on a table; none if the caller may not read jobs. */
export function useJobsOf(id: Identifier, caller: Caller): readonly JobSummary[] {
  const namespace = id.slice(0, -1);
  const { data } = useCall(
    "listJobs",
    { id: namespace, table: id.join(delimiterFor(namespace)), limit: jobsOfTableMax },
    { enabled: may(caller, "reader", namespace) },
  );
  return data?.jobs ?? [];
}

/** The operations that list something page by page. */
type ListName = {
  [Name in OperationName]: AnswerTo<Name> extends { page_token?: string | undefined } ? Name : never;
}[OperationName];

/** Lists something page by page. */
export function useList<Name extends ListName, Item>(
  name: Name,
  request: RequestTo<Name>,
  itemsOf: (answer: AnswerTo<Name>) => readonly Item[],
  options: Partial<ReturnType<typeof polling>> = {},
) {
  const read = (page_token: string | undefined, signal: AbortSignal) =>
    call(name, { ...request, page_token } as RequestTo<Name>, signal);
  return useInfiniteQuery({
    queryKey: [name, request, "pages"],
    queryFn: async ({ pageParam, signal }) => {
      let page = await read(pageParam, signal);
      for (let tries = 0; itemsOf(page).length === 0 && page.page_token && tries < emptyPagesMax; tries += 1)
        page = await read(page.page_token, signal);
      return { items: itemsOf(page), next: page.page_token || undefined };
    },
    initialPageParam: undefined as string | undefined,
    getNextPageParam: ({ next }) => next,
    ...options,
  });
}
export type List<Item> = Pick<
  ReturnType<typeof useList<ListName, Item>>,
  "data" | "error" | "failureReason" | "hasNextPage" | "isFetchingNextPage" | "fetchNextPage" | "refetch"
>;

/** Returns the loaded items of a list; undefined until the first page is loaded. */
export const itemsOf = <Item>({ data }: Pick<List<Item>, "data">) => data?.pages.flatMap(({ items }) => items);

/** Reads all pages of a map. */
export async function readAll<Entry>(
  load: (page: { page_token: string | undefined }) => Promise<[Readonly<Record<string, Entry>>, string | undefined]>,
): Promise<Record<string, Entry>> {
  let [all, page_token] = await load({ page_token: undefined });
  while (page_token) {
    const [more, next] = await load({ page_token });
    all = { ...all, ...more };
    page_token = next;
  }
  return all;
}

/** Runs the action of a button, once at a time. A success updates everything that the page shows. */
export function useAction() {
  const client = useQueryClient();
  const { mutate, error, isPending } = useMutation({
    mutationFn: (work: () => Promise<unknown>) => work(),
    onSettled: async (_result, error) => {
      const updated = client.invalidateQueries();
      // A failure appears at once, because the update lasts as long as an outage.
      if (error === null) await updated;
    },
  });
  return {
    /** Asks for the values of a form and saves them like `run`. Errors appear in the form. */
    ask: async (...[title, fields, action, save]: Parameters<typeof readForm>) => {
      await readForm(title, fields, action, save);
      await client.invalidateQueries();
    },
    isBusy: isPending,
    failed: error === null ? "" : messageOf(error),
    run: (work: () => Promise<unknown>) => {
      if (!isPending) mutate(work);
    },
  };
}

/** Announces the message whenever it changes, except for the first one. */
export function useAnnounced(message: string): void {
  const last = useRef(message);
  useEffect(() => {
    if (message !== last.current && message !== "") announce(message);
    last.current = message;
  }, [message]);
}
