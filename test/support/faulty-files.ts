/**
 * A file system whose calls fail: `node --import faulty-files.ts`, with FAULTY_FILES_DIR naming a folder. The
 * file `rule` of that folder says which calls fail and how, and is read by each of them; the file `struck` gets a
 * byte for each call that fails.
 */
import fs from "node:fs";
import { link, rm, unlink } from "node:fs/promises";
import { syncBuiltinESMExports } from "node:module";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { z } from "zod";
import { faults } from "./faulty-proxy.ts";

const pollMs = 20;

/** The fault of calls of a function on a path that matches a regular expression. */
const Rule = z.object({
  fault: z.enum(faults),
  call: z.enum(["link", "lstatSync", "rm", "unlink"]),
  path: z.string(),
});
type Rule = z.infer<typeof Rule>;

const folder = z.string().parse(process.env.FAULTY_FILES_DIR);
const ruleFile = join(folder, "rule");
const [{ lstatSync }, originals] = [fs, { link, rm, unlink }];

function ruleOf(call: Rule["call"], path: unknown): Rule | undefined {
  const rule = Rule.nullable().parse(JSON.parse(fs.readFileSync(ruleFile, "utf8")));
  if (rule?.call !== call || !new RegExp(rule.path).test(String(path))) return undefined;
  fs.appendFileSync(join(folder, "struck"), ".");
  return rule;
}

/** Waits until the rule of now is one no more: a file system that hangs does what it was told in the end. */
async function lifted(): Promise<void> {
  const text = fs.readFileSync(ruleFile, "utf8");
  while (fs.readFileSync(ruleFile, "utf8") === text) await wait(pollMs);
}

function failure(): Error {
  return Object.assign(new Error("EIO: i/o error"), { code: "EIO" });
}

/** @param target Which of the arguments the rule's path is compared with. */
function faulty<Arguments extends unknown[]>(
  call: keyof typeof originals,
  original: (...given: Arguments) => Promise<void>,
  target: number,
) {
  return async (...given: Arguments): Promise<void> => {
    const rule = ruleOf(call, given[target]);
    if (rule === undefined) return original(...given);
    if (rule.fault === "hangs") {
      await lifted();
      return original(...given);
    }
    if (rule.fault === "answerLost") await original(...given);
    throw failure();
  };
}

Object.assign(fs.promises, {
  link: faulty("link", originals.link, 1),
  rm: faulty("rm", originals.rm, 0),
  unlink: faulty("unlink", originals.unlink, 0),
});
Object.assign(fs, {
  lstatSync: (...given: Parameters<typeof lstatSync>) => {
    if (ruleOf("lstatSync", given[0]) !== undefined) throw failure();
    return lstatSync(...given);
  },
});
syncBuiltinESMExports();
