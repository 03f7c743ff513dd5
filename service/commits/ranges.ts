import { mainBranch } from "@tiltyard/protocol";
import { invalidInput } from "../domain/request-fields.ts";
import { type BranchKey, emptyBranch } from "../store/branches.ts";
import { forgetColumns } from "../store/columns.ts";
import type { Session } from "../store/store.ts";
import { deleteTask } from "../store/tasks.ts";
import { countVersions, deleteVersions, findCut, type Range, versionsEnd } from "../store/versions.ts";
import { adoptionOf } from "./record-adoption.ts";

/** The number of records that one database transaction deletes within some milliseconds. */
const deletedAtOnceMax = 1_000;

/** Parses the ranges of BatchDeleteTableVersions. @throws CatalogError InvalidInput */
export function readRanges(
  ranges: readonly { readonly start_version: number; readonly end_version: number }[],
): readonly Range[] {
  const problems = ranges.flatMap(({ start_version: start, end_version: end }, index) => {
    if (start < 0) return [`ranges.${index}.start_version: must not be negative`];
    if (end < -1) return [`ranges.${index}.end_version: must be -1 or more`];
    return end !== -1 && end < start ? [`ranges.${index}: must not end before its start`] : [];
  });
  if (problems.length > 0) throw invalidInput(problems);
  return ranges.map(({ start_version: start, end_version: end }) => ({ start, end: end === -1 ? versionsEnd : end }));
}

/**
 * Deletes the first records of ranges that are too large for one database transaction, so that other writers wait only
 * briefly.
 *
 * @returns The number of deleted records; 0 if the rest is small enough for `deleteRanges`.
 */
export async function deleteFirstOf(session: Session, at: BranchKey, ranges: readonly Range[]): Promise<number> {
  if (ranges.some(isEverything)) return 0;
  for (const range of ranges) {
    const cut = await findCut(session, at, range, deletedAtOnceMax);
    if (cut !== undefined) return deleteVersions(session, at, { ...range, end: cut });
  }
  return 0;
}

/**
 * Deletes the version records of ranges. The objects of the table remain. Deleting all records of a branch begins a new
 * generation with a separate numbering; the duration does not depend on the number of records.
 *
 * @returns The number of deleted records.
 */
export async function deleteRanges(session: Session, at: BranchKey, ranges: readonly Range[]): Promise<number> {
  // The deletion includes versions that are not adopted yet.
  await deleteTask(session, adoptionOf(at));
  if (at.branch === mainBranch) await forgetColumns(session, at.table.id);
  if (ranges.some(isEverything)) {
    const deleted = await countVersions(session, at);
    await emptyBranch(session, at);
    return deleted;
  }
  let deleted = 0;
  for (const range of ranges) deleted += await deleteVersions(session, at, range);
  return deleted;
}

function isEverything({ start, end }: Range): boolean {
  return start === 0 && end === versionsEnd;
}
