import { parseArgs } from "node:util";
import { z } from "zod";
import { preparePython } from "../interop/tools.ts";
import { type Scenario, scenarios } from "./scenarios.ts";

export interface BenchOptions {
  readonly rounds: number;
  /** The duration of one measurement in seconds. */
  readonly seconds: number;
  /** The numbers of connections that every scenario is measured with. */
  readonly connections: readonly number[];
  /** The number of tables. */
  readonly tables: number;
  readonly scenarios: readonly Scenario[];
  /** Another checkout to compare with this one. */
  readonly before: string | undefined;
  /** The file for the figures as JSON. */
  readonly json: string | undefined;
  /** A Python with pylance. */
  readonly python: string;
}

export const usage = `npm run bench -- growth [--tables N] [--versions N]   how it fares with much in the catalog
npm run bench -- load [--seconds N] [--connections N]   how it fares for long, under clients that misbehave
npm run bench -- jobs [--rows N] [--rounds N]   how long a column takes that a job fills, and one that Geneva fills alone
npm run bench -- search [--rows N] [--connections N,N] [--table FOLDER] [--before DIR]   vectors found by an index, beside lancedb on the folder
npm run bench -- start [--rounds N] [--tables N] [--json FILE]   the first answer of a process that starts, and its memory
npm run bench -- [options]
  --rounds N        measurements of each server, alternating (5)
  --seconds N       how long one measurement lasts (2)
  --connections N   connections, each with one request at a time (32); several: 1,8,32,64,128,200
  --tables N        tables of the namespace (1000)
  --only NAMES      ${scenarios.map(({ name }) => name).join(",")} (all)
  --before DIR      another checkout, after its own npm ci, side by side with this one
  --json FILE       write the figures to a file too
TILTYARD_BENCH_PYTHON names a Python that has pylance; without it, the one of the interop tests is used.`;

export const between = (least: number, most: number) => z.coerce.number().pipe(z.int().min(least).max(most));
export const upTo = (most: number) => between(1, most);
const listUpTo = (most: number) =>
  z
    .string()
    .transform((text) => text.split(",").map(Number))
    .pipe(z.array(z.int().min(1).max(most)));

/** The schemas of the options that several modes share. */
export const numbers = {
  rounds: upTo(100),
  seconds: upTo(60),
  connections: listUpTo(1000),
  tables: upTo(1_000_000),
};
const Options = z.object({
  rounds: numbers.rounds.default(5),
  seconds: numbers.seconds.default(2),
  connections: numbers.connections.default([32]),
  tables: numbers.tables.default(1000),
  only: z.string().transform(scenariosNamed).default(scenarios),
  before: z.string().optional(),
  json: z.string().optional(),
});

/**
 * Parses the options.
 *
 * @param args The arguments of the command.
 * @throws Error with the problem and the usage of the command.
 */
export function readOptions(args: readonly string[], environment: NodeJS.ProcessEnv): BenchOptions {
  const { only, before, json, ...given } = readArguments(args, Options);
  return { ...given, scenarios: only, before, json, python: pythonOf(environment) };
}

/**
 * Parses the options of a schema, each with a value.
 *
 * @throws Error with the problem and the usage of the command.
 */
export function readArguments<Schema extends z.ZodObject>(args: readonly string[], schema: Schema): z.infer<Schema> {
  try {
    const options = Object.fromEntries(Object.keys(schema.shape).map((name) => [name, { type: "string" }] as const));
    return schema.parse(parseArgs({ args: [...args], options }).values);
  } catch (error) {
    const message = error instanceof z.ZodError ? z.prettifyError(error) : (error as Error).message;
    throw new Error(`${message}\n\n${usage}`, { cause: error });
  }
}

/** Returns the path of a Python with pylance. */
export function pythonOf(environment: NodeJS.ProcessEnv): string {
  return environment.TILTYARD_BENCH_PYTHON ?? preparePython();
}

function scenariosNamed(names: string): readonly Scenario[] {
  return names.split(",").map(scenarioNamed);
}

/** Returns the scenario with a name. @throws Error if none exists. */
export function scenarioNamed(name: string): Scenario {
  const found = scenarios.find((scenario) => scenario.name === name);
  if (found === undefined)
    throw new Error(
      `--only: the scenario ${name} does not exist; choose from ${scenarios.map((each) => each.name).join(", ")}`,
    );
  return found;
}
