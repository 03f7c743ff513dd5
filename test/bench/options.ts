import { parseArgs } from "node:util";
import { z } from "zod";
import { preparePython } from "../interop/tools.ts";
import { type Scenario, scenarios } from "./scenarios.ts";

export interface BenchOptions {
  readonly rounds: number;
  /** How long one measurement lasts, in whole seconds. */
  readonly seconds: number;
  /** Numbers of connections that every scenario is measured with. */
  readonly connections: readonly number[];
  /** Numbers of processes of the catalog, and of bare Hono. */
  readonly processes: readonly number[];
  /** How many tables there are to look for. */
  readonly tables: number;
  readonly scenarios: readonly Scenario[];
  /** Another checkout to measure beside this one. */
  readonly before: string | undefined;
  /** Where the figures go as JSON. */
  readonly json: string | undefined;
  /** The Python that has pylance. */
  readonly python: string;
}

export const usage = `npm run bench -- growth [--tables N] [--versions N]   how it fares with much in the catalog
npm run bench -- load [--seconds N] [--connections N]   how it fares for long, under clients that misbehave
npm run bench -- kills [--seconds N] [--every SECONDS] [--processes N]   that nothing is lost when its processes are killed under load
npm run bench -- jobs [--rows N] [--rounds N]   how long a column takes that a job fills, and one that Geneva fills alone
npm run bench -- search [--rows N] [--connections N,N] [--table FOLDER] [--before DIR]   vectors found by an index, beside lancedb on the folder
npm run bench -- start [--rounds N] [--processes N,N] [--tables N] [--json FILE]   the first answer of a process that starts, and its memory
npm run bench -- rate [--only NAME] [--rounds N] [--seconds N] [--connections N] [--processes N,N] [--tables N] [--json FILE]   answers at a fixed rate
npm run bench -- profile [--only NAME] [--seconds N] [--svg FILE]   where the time of a kind of request goes, as a flame graph
npm run bench -- [options]
  --rounds N        measurements of each server, alternating (5)
  --seconds N       how long one measurement lasts (2)
  --connections N   connections, each with one request at a time (32); several: 1,8,32,64,128,200
  --processes N     processes of the catalog and of bare Hono (1); several: 1,4
  --tables N        tables of the namespace (1000)
  --only NAMES      ${scenarios.map(({ name }) => name).join(",")} (all)
  --before DIR      another checkout, after its own npm ci, side by side with this one
  --json FILE       write the figures to a file too
TILTYARD_BENCH_PYTHON names a Python that has pylance; without it, the one of the interop tests is used.`;

export const upTo = (most: number) => z.coerce.number().pipe(z.int().min(1).max(most));
const listUpTo = (most: number) =>
  z
    .string()
    .transform((text) => text.split(",").map(Number))
    .pipe(z.array(z.int().min(1).max(most)));

/** What the options that several modes have may be. */
export const numbers = {
  rounds: upTo(100),
  seconds: upTo(60),
  connections: listUpTo(1000),
  processes: listUpTo(64),
  tables: upTo(1_000_000),
};
const Numbers = z.object(numbers);

/**
 * @param args The arguments of the command.
 * @throws Error that says what is wrong, and how the command is used.
 */
export function readOptions(args: readonly string[], environment: NodeJS.ProcessEnv): BenchOptions {
  return withUsage(() => {
    const { values } = parseArgs({
      args: [...args],
      options: {
        rounds: { type: "string", default: "5" },
        seconds: { type: "string", default: "2" },
        connections: { type: "string", default: "32" },
        processes: { type: "string", default: "1" },
        tables: { type: "string", default: "1000" },
        only: { type: "string" },
        before: { type: "string" },
        json: { type: "string" },
      },
    });
    return {
      ...Numbers.parse(values),
      scenarios: scenariosNamed(values.only),
      before: values.before,
      json: values.json,
      python: pythonOf(environment),
    };
  });
}

/** Reads options. @throws Error that says what is wrong, and how the command is used. */
export function withUsage<Options>(read: () => Options): Options {
  try {
    return read();
  } catch (error) {
    const message = error instanceof z.ZodError ? z.prettifyError(error) : (error as Error).message;
    throw new Error(`${message}\n\n${usage}`, { cause: error });
  }
}

/** @returns The path of the Python that has pylance. */
export function pythonOf(environment: NodeJS.ProcessEnv): string {
  return environment.TILTYARD_BENCH_PYTHON ?? preparePython();
}

function scenariosNamed(names: string | undefined): readonly Scenario[] {
  return names === undefined ? scenarios : names.split(",").map(scenarioNamed);
}

/** @throws Error when there is none of that name. */
export function scenarioNamed(name: string): Scenario {
  const found = scenarios.find((scenario) => scenario.name === name);
  if (found === undefined)
    throw new Error(`--only: there is no scenario ${name}, but ${scenarios.map((each) => each.name).join(", ")}`);
  return found;
}
