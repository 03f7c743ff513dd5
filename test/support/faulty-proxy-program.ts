/**
 * A faulty proxy for tests in other languages: faulty-proxy-program.ts URL. It prints its own URL. From then on each line
 * of standard input is a rule as JSON, or `null` for none, which takes the place of the one before and is
 * answered by how many requests came to grief until then. It ends with its standard input.
 */
import { createInterface } from "node:readline";
import { z } from "zod";
import { faults, startFaultyProxy } from "./faulty-proxy.ts";

/** What befalls the requests of a method whose path matches a regular expression. */
const Rule = z.object({ fault: z.enum(faults), method: z.string(), path: z.string() }).nullable();

const [url = ""] = process.argv.slice(2);
let rule: z.infer<typeof Rule> = null;
await using proxy = await startFaultyProxy(url, (request) => {
  const applies =
    rule !== null && request.method === rule.method && new RegExp(rule.path).test(decodeURIComponent(request.url ?? ""));
  return applies ? rule?.fault : undefined;
});
process.stdout.write(`${proxy.url}\n`);
for await (const line of createInterface({ input: process.stdin })) {
  rule = Rule.parse(JSON.parse(line));
  proxy.breakHanging();
  process.stdout.write(`${Object.values(proxy.counts).reduce((sum, count) => sum + count, 0)}\n`);
}
