import { useLayoutEffect, useRef } from "preact/hooks";
import { counted } from "./format.ts";
import { itemsOf, type List } from "./queries.ts";
import { announce, type Children, Loading, Problem } from "./view.tsx";

/** A list that is loaded page by page, with a button for its next page. */
export function Pages<Item>({
  list,
  show,
  empty,
  more,
}: {
  readonly list: List<Item>;
  readonly show: (items: readonly Item[]) => Children;
  readonly empty: () => Children;
  /** The text of the button. */
  readonly more: string;
}) {
  const root = useRef<HTMLDivElement>(null);
  const { error, failureReason, hasNextPage, isFetchingNextPage, fetchNextPage, refetch } = list;
  const items = itemsOf(list);
  /** The number of items when the button requested the next page. */
  const before = useRef<number>(undefined);
  useLayoutEffect(() => {
    if (before.current === undefined || items === undefined || items.length <= before.current) return;
    announce(`${items.length - before.current} more.`);
    // The pressed button may no longer exist, so the focus moves to the first of the new rows.
    const row = root.current?.querySelectorAll("tbody > tr, li")[before.current];
    row?.querySelector<HTMLElement>("a, button")?.focus();
    before.current = undefined;
  }, [items?.length]);
  function onMore() {
    if (isFetchingNextPage) return;
    before.current = items?.length;
    fetchNextPage();
  }
  if (items === undefined) {
    const problem = error ?? failureReason;
    return problem == null ? <Loading /> : <Problem error={problem} retry={refetch} />;
  }
  return (
    <div ref={root}>
      {items.length > 0 ? show(items) : !hasNextPage && empty()}
      {error !== null && <Problem error={error} retry={hasNextPage ? onMore : refetch} />}
      {hasNextPage && error === null && (
        <button type="button" class="quiet more" aria-disabled={isFetchingNextPage} onClick={onMore}>
          {more}
        </button>
      )}
    </div>
  );
}

/** Returns a title with the number of loaded items. */
export function titleOf<Item>(title: string, list: Pick<List<Item>, "data" | "hasNextPage">): string {
  const items = itemsOf(list);
  return items === undefined || items.length === 0
    ? title
    : `${title} (${counted(items.length)}${list.hasNextPage ? "+" : ""})`;
}
