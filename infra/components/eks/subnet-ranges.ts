/** The maximum number of zones with private subnets of a quarter of the range and public ones of a sixteenth. */
const zonesOfQuarters = 3;

/**
 * Divides a range among the zones. Private subnets, which also contain the addresses of pods, are as large as possible.
 *
 * @returns The ranges of the public subnets and those of the private ones.
 */
export function subnetRanges(range: string, zoneCount: number): [string[], string[]] {
  const [address = "", length = "16"] = range.split("/");
  const base = address.split(".").reduce((sum, octet) => sum * 256 + Number(octet), 0);
  // For more zones, up to seven, private subnets are eighths and public ones 64ths of the range.
  const [privateBits, publicBits] = zoneCount <= zonesOfQuarters ? [2, 4] : [3, 6];
  const at = (index: number, bits: number) => {
    const start = base + index * 2 ** (32 - Number(length) - bits);
    const octets = [24, 16, 8, 0].map((shift) => Math.floor(start / 2 ** shift) % 256);
    return `${octets.join(".")}/${Number(length) + bits}`;
  };
  const zones = Array.from({ length: zoneCount }, (_, zone) => zone);
  // The public subnets are in the last quarter or eighth.
  const publicStart = 2 ** publicBits - 2 ** (publicBits - privateBits);
  return [zones.map((zone) => at(publicStart + zone, publicBits)), zones.map((zone) => at(zone, privateBits))];
}
