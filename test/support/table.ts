export interface TestTable {
  readonly id: string[];
  readonly location: string;
}

export function finalName(version: number, scheme: "V1" | "V2" = "V2"): string {
  const number = scheme === "V1" ? `${version}` : `${2n ** 64n - 1n - BigInt(version)}`.padStart(20, "0");
  return `${number}.manifest`;
}

/** Returns the folder of a table in the form of manifest paths, without a leading slash. */
export function pathOf(table: TestTable): string {
  return decodeURIComponent(new URL(table.location).pathname).slice(1);
}
