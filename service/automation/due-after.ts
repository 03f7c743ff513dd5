import { defaultRowsPerFragment } from "@tiltyard/protocol";
import type { Policy } from "../domain/policy.ts";
import type { Automation } from "../store/automations.ts";
import type { TableState } from "./table-state.ts";

/**
 * Returns the version after which a job of an automation is due; undefined if none is due. New rows are in fragments
 * that no earlier job has seen; the commits of a job itself add none.
 */
export function dueAfter(
  { kind, target, seen }: Pick<Automation, "kind" | "target" | "seen">,
  { version, fragment, fragments }: TableState,
  { auto_compact, auto_build_index, auto_clean_up }: Policy,
): number | undefined {
  switch (kind) {
    case "backfill":
    case "refresh":
      return fragment > seen.fragment ? seen.version : undefined;
    case "compact": {
      const { small_fragments: most, target_rows_per_fragment: rows = defaultRowsPerFragment } = auto_compact ?? {};
      const small = fragments.filter((each) => each.rows < rows).length;
      // Fragments skipped by one compaction are skipped by the next.
      return most !== undefined && small >= most && fragment > seen.fragment ? seen.version : undefined;
    }
    case "build_index": {
      const policy = auto_build_index?.find(({ column }) => column === target);
      const unseen = fragments.filter(({ id }) => id > seen.fragment).length;
      return policy !== undefined && unseen >= policy.new_fragments ? seen.version : undefined;
    }
    case "clean_up": {
      const last = seen.version + (auto_clean_up?.versions ?? Number.POSITIVE_INFINITY);
      return version >= last ? last - 1 : undefined;
    }
  }
}
