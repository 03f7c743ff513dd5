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
