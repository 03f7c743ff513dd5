/** Zones of the emulated clouds. Not every zone has every machine, and one does not support EKS control planes. */

export interface Zone {
  readonly name: string;
  readonly id: string;
}

/** AWS names zones differently in each account, so any of them may be the one that EKS cannot use. */
export function zonesOfAws(region: string): readonly Zone[] {
  const ids: Readonly<Record<string, string>> = { a: "use1-az1", b: "use1-az3", c: "use1-az2", d: "use1-az4" };
  return Object.entries(ids).map(([letter, id]) => ({ name: `${region}${letter}`, id }));
}

/** Regions of Google with another number of zones than three. */
const zonesOfRegion: Readonly<Record<string, readonly string[]>> = {
  "us-central1": ["a", "b", "c", "f"],
  "small-region1": ["a", "b"],
};

export function zonesOfGoogle(region: string): readonly string[] {
  return (zonesOfRegion[region] ?? ["a", "b", "c"]).map((letter) => `${region}-${letter}`);
}

/** Matches machines with a GPU, which the first zone does not have. */
const rare = /^(g2|a2|a3|g6|g5|p4|p5)[-.a-z]/;

/** Matches the zones of regions without GPUs. */
const withoutGpus = /^no-gpus-?1/;

/** Returns the zones that have a machine. */
export function offering(machine: string, zones: readonly string[]): readonly string[] {
  return rare.test(machine) ? zones.filter((zone) => !zone.endsWith("a") && !withoutGpus.test(zone)) : zones;
}
