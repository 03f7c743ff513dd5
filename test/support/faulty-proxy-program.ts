/**
 * A faulty proxy for tests in other languages: faulty-proxy-program.ts URL. It prints its own URL. Each line of standard input is a command
 * as JSON: `{"rule": ...}` replaces the rule (`null` removes it), `{}` keeps it. The program answers with the number of requests that failed under
 * the previous rule. It ends with its standard input.
 */
import { createInterface } from "node:readline";
import { z } from "zod";
import { faults, startFaultyProxy } from "./faulty-proxy.ts";

/** A fault for requests with a method and a path that matches a regular expression. */
const Rule = z.object({
  fault: z.enum(faults),
  method: z.string(),
  path: z.string().transform((text) => new RegExp(text)),
});
const Command = z.strictObject({ rule: Rule.nullable().optional() });

const [url = ""] = process.argv.slice(2);
let rule: z.infer<typeof Rule> | null = null;
let struck = 0;
const proxy = await startFaultyProxy(url, ({ method, url: path = "" }) => {
  if (rule === null || rule.method !== method || !rule.path.test(decodeURIComponent(path))) return undefined;
  struck += 1;
  return rule.fault;
});
process.stdout.write(`${proxy.url}\n`);
for await (const line of createInterface({ input: process.stdin })) {
  const { rule: next } = Command.parse(JSON.parse(line));
  process.stdout.write(`${struck}\n`);
  if (next === undefined) continue;
  [rule, struck] = [next, 0];
  proxy.breakHanging();
}
await proxy[Symbol.asyncDispose]();
