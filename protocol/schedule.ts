import { Cron } from "croner";
import { z } from "zod";
import { characters, text } from "./bounds.ts";

/** The times at which jobs may be opened. */
export const Schedule = z
  .strictObject({
    cron: text(characters.name).describe("The five fields of cron, such as `0 3 * * *`, or a name such as `@daily`."),
    time_zone: text(characters.name)
      .optional()
      .describe("The IANA time zone of `cron`, such as `Europe/Berlin`; UTC when absent."),
  })
  .superRefine((schedule, context) => {
    const { problem } = nextTimeOf(schedule, Date.now());
    if (problem !== undefined) context.addIssue({ code: "custom", ...problem });
  })
  .meta({ id: "Schedule" });
export type Schedule = z.infer<typeof Schedule>;

/** Returns the first time of a valid schedule after another time, both in milliseconds since 1970. */
export function nextTimeAfter(schedule: Schedule, afterMillis: number): number {
  return nextTimeOf(schedule, afterMillis).timeMillis ?? Number.POSITIVE_INFINITY;
}

interface NextTime {
  readonly timeMillis?: number;
  readonly problem?: { readonly path: (keyof Schedule)[]; readonly message: string };
}

function nextTimeOf({ cron, time_zone: timezone = "UTC" }: Schedule, afterMillis: number): NextTime {
  let parsed: Cron;
  try {
    parsed = new Cron(cron, { mode: "5-part", timezone });
  } catch {
    return { problem: { path: ["cron"], message: "must be five fields of cron, such as 0 3 * * *, or @daily" } };
  }
  try {
    const next = parsed.nextRun(new Date(afterMillis));
    if (next !== null) return { timeMillis: next.getTime() };
  } catch {
    return { problem: { path: ["time_zone"], message: "must be an IANA time zone, such as Europe/Berlin" } };
  }
  return { problem: { path: ["cron"], message: "has no time in the future" } };
}
