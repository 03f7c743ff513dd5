/**
 * A file system with injected faults: `node --import faulty-files.ts`. FAULTY_FILES_DIR names a folder. Each call reads the file `rule` of that
 * folder, which selects the calls that fail and their fault, and each failed call appends a byte to the file `struck`.
 */
import fs from "node:fs";
import { rm, unlink } from "node:fs/promises";
import { syncBuiltinESMExports } from "node:module";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { z } from "zod";
import { faults } from "./faulty-proxy.ts";

const pollMs = 20;

/** A fault for the calls of a function on paths that match a regular expression. */
const Rule = z.object({
  fault: z.enum(faults),
  call: z.enum(["linkSync", "lstatSync", "rm", "unlink"]),
  path: z.string(),
});
type Rule = z.infer<typeof Rule>;

const folder = z.string().parse(process.env.FAULTY_FILES_DIR);
const ruleFile = join(folder, "rule");
const [{ linkSync, lstatSync }, originals] = [fs, { rm, unlink }];

function ruleOf(call: Rule["call"], path: unknown): Rule | undefined {
  const rule = Rule.nullable().parse(JSON.parse(fs.readFileSync(ruleFile, "utf8")));
  if (rule?.call !== call || !new RegExp(rule.path).test(String(path))) return undefined;
  fs.appendFileSync(join(folder, "struck"), ".");
  return rule;
}

/** Returns a function that reports whether the rule has changed, after which a hanging call continues. */
function untilLifted(): () => boolean {
  const text = fs.readFileSync(ruleFile, "utf8");
  return () => fs.readFileSync(ruleFile, "utf8") !== text;
}

function failure(): Error {
  return Object.assign(new Error("EIO: i/o error"), { code: "EIO" });
}

function faulty<Arguments extends unknown[]>(
  call: keyof typeof originals,
  original: (...given: Arguments) => Promise<void>,
) {
  return async (...given: Arguments): Promise<void> => {
    const rule = ruleOf(call, given[0]);
    if (rule === undefined) return original(...given);
    if (rule.fault === "hangs") {
      for (const isLifted = untilLifted(); !isLifted(); ) await wait(pollMs);
      return original(...given);
    }
    if (rule.fault === "answerLost") await original(...given);
    throw failure();
  };
}

fs.promises.rm = faulty("rm", originals.rm);
fs.promises.unlink = faulty("unlink", originals.unlink);
Object.assign(fs, {
  linkSync: (...given: Parameters<typeof linkSync>) => {
    const rule = ruleOf("linkSync", given[1]);
    if (rule === undefined) return linkSync(...given);
    if (rule.fault === "hangs") {
      const nothing = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));
      for (const isLifted = untilLifted(); !isLifted(); ) Atomics.wait(nothing, 0, 0, pollMs);
      return linkSync(...given);
    }
    if (rule.fault === "answerLost") linkSync(...given);
    throw failure();
  },
  lstatSync: (...given: Parameters<typeof lstatSync>) => {
    if (ruleOf("lstatSync", given[0]) !== undefined) throw failure();
    return lstatSync(...given);
  },
});
syncBuiltinESMExports();
