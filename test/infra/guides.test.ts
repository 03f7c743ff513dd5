import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { defaultPools } from "../../infra/node-pools.ts";
import { amountOf } from "../../platform/index.ts";
import { deployed } from "../support/stack.ts";

const sizes: Readonly<Record<string, number>> = { xlarge: 4, "2xlarge": 8, "4xlarge": 16 };

/** The CPUs in the name of a machine: `n2-standard-8`, `m7i.2xlarge`. */
function cpusOf(machine: string): number {
  return sizes[machine.split(".")[1] ?? ""] ?? Number(machine.split("-").at(-1));
}

test.each(["gke", "eks"] as const)("the guide for %s has the machines and the quota of a default stack", (cloud) => {
  const rows = defaultPools(cloud).map(({ name, machineType, min, max, diskGb }) => {
    const machines = [machineType ?? ""].flat();
    const [cpus = 0, ...others] = machines.map(cpusOf);
    expect(cpus).toBeGreaterThan(0);
    for (const other of others) expect(other).toBe(cpus);
    return `| \`${name}\` | ${machines.map((each) => `\`${each}\``).join(" or ")} | ${min} | ${max} | ${max * cpus} | ${max * diskGb} |`;
  });
  expect(readFileSync(`docs/guides/${cloud}.md`, "utf8")).toContain(`${rows.join("\n")}\n\n`);
});

test.each(["gke", "eks"] as const)("the guide for %s adds up the costs of a default stack at rest", (cloud) => {
  const text = readFileSync(`docs/guides/${cloud}.md`, "utf8");
  const rows = [...text.matchAll(/^\| (.+) \| (\d\.\d+) \| (\d+) \|$/gm)].map(([, part = "", hourly, monthly]) => ({
    ...{ part, hourly: Number(hourly), monthly: Number(monthly) },
  }));
  for (const { hourly, monthly } of rows) expect(monthly).toBe(Math.round(hourly * 730));
  const [core] = defaultPools(cloud).filter(({ min }) => min > 0);
  const node = rows.find(({ part }) => part.includes(`\`${core?.machineType}\``));
  expect(node).toBeDefined();
  const sums = rows.filter(({ part }) => part.startsWith("together"));
  expect(sums.map(({ part }) => part)).toContain(`together with ${core?.min} node`);
  for (const { part, hourly } of sums) {
    const nodes = Number(/\d+/.exec(part)?.[0]);
    const each = rows.filter((row) => !sums.includes(row));
    const isPerNode = (row: (typeof rows)[number]) => row === node || row.part.startsWith("its share");
    const sum = each.reduce((total, row) => total + row.hourly * (isPerNode(row) ? nodes : 1), 0);
    expect(hourly).toBeCloseTo(sum, 6);
  }
});

test("the guide for existing clusters adds up the requests of a stack at rest", async () => {
  const { one, all } = await deployed("existing");
  const pods = [one("kubernetes:apps/v1:StatefulSet"), ...all("kubernetes:apps/v1:Deployment")];
  const requests: { cpu: string; memory: string }[] = pods
    .flatMap(({ inputs }) => inputs.spec.template.spec.containers)
    .concat(one("kubernetes:helm.sh/v3:Release").inputs.values)
    .map(({ resources }) => resources.requests);
  const [cpus, mebibytes] = (["cpu", "memory"] as const).map((each) =>
    requests.reduce((sum, request) => sum + amountOf(request[each]), 0),
  );
  const sum = `${cpus?.toFixed(1)} CPUs and ${(mebibytes ?? 0) / 2 ** 20} MiB together`;
  expect(readFileSync("docs/guides/existing.md", "utf8")).toContain(sum);
});
