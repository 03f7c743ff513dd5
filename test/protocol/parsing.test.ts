import { parsing } from "@tiltyard/protocol";
import { expect, test } from "vitest";
import { z } from "zod";

const byKind = z.discriminatedUnion("kind", [z.object({ kind: z.literal("a") }), z.object({ kind: z.literal("b") })]);

test.each<[string, z.ZodType, unknown]>([
  ["is required", z.string(), undefined],
  ["must be a string, not a number", z.string(), 5],
  ["must be an object, not a list", z.record(z.string(), z.string()), []],
  ["must be an integer", z.int(), 1.5],
  ["must be a number, not null", z.int(), null],
  ["must be one of on, off", z.enum(["on", "off"]), "no"],
  ["is required; it must be one of on, off", z.enum(["on", "off"]), undefined],
  ["must be 2", z.literal(2), 1],
  ["must be at least 2", z.number().min(2), 1],
  ["must be at most 2", z.number().max(2), 3],
  ["must be more than 0", z.number().positive(), 0],
  ["must be a multiple of 5", z.number().multipleOf(5), 3],
  ["must not be empty", z.string().min(1), ""],
  ["must have at most 3 characters", z.string().max(3), "long"],
  ["must have at least 2 items", z.array(z.int()).min(2), []],
  ["must have exactly 2 items", z.array(z.int()).length(2), [1]],
  ["has no field x, y", z.strictObject({}), { x: 1, y: 2 }],
  ["has no valid form", z.union([z.string(), z.int()]), true],
  ["must be one of a, b", byKind, { kind: "c" }],
  ["must be the letter a", z.string().regex(/^a$/, "must be the letter a"), "b"],
])("says that a value %s", (message, schema, value) => {
  expect(schema.safeParse(value, parsing).error?.issues).toMatchObject([{ message }]);
});
