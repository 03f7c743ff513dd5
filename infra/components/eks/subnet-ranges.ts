import { addressesOf } from "../../settings/setting-types.ts";

/** The maximum number of zones with private subnets of a quarter of the range and public ones of a sixteenth. */
const zonesOfQuarters = 3;

/**
 * Divides a range among the zones. Private subnets, which also contain the addresses of pods, are as large as possible.
 *
 * @returns The ranges of the public subnets and those of the private ones.
 */
export function subnetRanges(range: string, zoneCount: number): [string[], string[]] {
  const { first, length } = addressesOf(range);
  // For more zones, up to seven, private subnets are eighths and public ones 64ths of the range.
  const [privateBits, publicBits] = zoneCount <= zonesOfQuarters ? [2, 4] : [3, 6];
  const at = (index: number, bits: number) => {
    const start = first + index * 2 ** (32 - length - bits);
    const octets = [24, 16, 8, 0].map((shift) => Math.floor(start / 2 ** shift) % 256);
    return `${octets.join(".")}/${length + bits}`;
  };
  const zones = Array.from({ length: zoneCount }, (_, zone) => zone);
  // The public subnets are in the last quarter or eighth.
  const publicStart = 2 ** publicBits - 2 ** (publicBits - privateBits);
  return [zones.map((zone) => at(publicStart + zone, publicBits)), zones.map((zone) => at(zone, privateBits))];
}
