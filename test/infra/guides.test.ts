import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { defaultPools } from "../../infra/node-pools.ts";

const sizes: Readonly<Record<string, number>> = { xlarge: 4, "2xlarge": 8, "4xlarge": 16 };

/** The CPUs in the name of a machine: `n2-standard-8`, `m7i.2xlarge`. */
function cpusOf(machine: string): number {
  return sizes[machine.split(".")[1] ?? ""] ?? Number(machine.split("-").at(-1));
}

test.each(["gke", "eks"] as const)("the guide for %s has the machines and the quota of a default stack", (cloud) => {
  const rows = defaultPools(cloud).map(({ name, machineType, min, max, diskGb }) => {
    const cpus = cpusOf(String(machineType));
    expect(cpus).toBeGreaterThan(0);
    return `| \`${name}\` | \`${machineType}\` | ${min} | ${max} | ${max * cpus} | ${max * diskGb} |`;
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
