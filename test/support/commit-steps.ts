/** The steps of a commit in order. The version exists from `after insert` on. */
export const commitSteps = [
  "before check",
  "after check",
  "before insert",
  "after insert",
  "before copy",
  "after copy",
  "before delete",
  "after delete",
  "before finish",
  "after finish",
] as const;

export type CommitStep = (typeof commitSteps)[number];
