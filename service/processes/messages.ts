import { z } from "zod";

/**
 * What a process does. Over SQLite one writes, and the others read and hand it what changes something; over PostgreSQL all
 * are equal.
 */
const Role = z.enum(["writer", "reader", "equal"]);
export type Role = z.infer<typeof Role>;

/** What a process asks all others. */
const Question = z.discriminatedUnion("about", [
  z.object({ about: z.literal("metrics") }),
  z.object({ about: z.literal("changed roles"), principal: z.string() }),
]);
export type Question = z.infer<typeof Question>;

/** What the supervisor tells a process. */
export const ToWorker = z.discriminatedUnion("tiltyard", [
  z.object({
    tiltyard: z.literal("begin"),
    role: Role,
    count: z.int(),
    port: z.int(),
    folder: z.string(),
    hasServed: z.boolean(),
  }),
  /** The process that wrote has ended: this one writes from now on. */
  z.object({ tiltyard: z.literal("write") }),
  z.object({ tiltyard: z.literal("stop") }),
  /** All others have ended: nothing more is handed over. */
  z.object({ tiltyard: z.literal("alone") }),
  z.object({ tiltyard: z.literal("question"), id: z.int(), question: Question }),
  z.object({ tiltyard: z.literal("answers"), id: z.int(), answers: z.array(z.unknown()) }),
]);
export type ToWorker = z.infer<typeof ToWorker>;

/** What a process tells the supervisor. */
export const ToSupervisor = z.discriminatedUnion("tiltyard", [
  z.object({ tiltyard: z.literal("joined") }),
  z.object({ tiltyard: z.literal("ready"), url: z.string() }),
  z.object({ tiltyard: z.literal("ask"), id: z.int(), question: Question }),
  z.object({ tiltyard: z.literal("answer"), id: z.int(), answer: z.unknown() }),
]);
export type ToSupervisor = z.infer<typeof ToSupervisor>;
