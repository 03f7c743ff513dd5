/** Private subnets of a quarter of the range, and public ones of a sixteenth, as long as there are at most three. */
const zonesOfQuarters = 3;

/**
 * Cuts a range for the zones: private subnets, whose addresses pods have too, get as much as there is.
 *
 * @returns The ranges of the public subnets, and of the private ones.
 */
export function subnetRanges(range: string, zoneCount: number): [string[], string[]] {
  const [address = "", length = "16"] = range.split("/");
  const base = address.split(".").reduce((sum, octet) => sum * 256 + Number(octet), 0);
  // For more zones, up to seven, private subnets are eighths and public ones 64ths.
  const [privateBits, publicBits] = zoneCount <= zonesOfQuarters ? [2, 4] : [3, 6];
  const at = (index: number, bits: number) => {
    const start = base + index * 2 ** (32 - Number(length) - bits);
    const octets = [24, 16, 8, 0].map((shift) => Math.floor(start / 2 ** shift) % 256);
    return `${octets.join(".")}/${Number(length) + bits}`;
  };
  const zones = Array.from({ length: zoneCount }, (_, zone) => zone);
  // The public ones are in the last quarter or eighth.
  const publicStart = 2 ** publicBits - 2 ** (publicBits - privateBits);
  return [zones.map((zone) => at(publicStart + zone, publicBits)), zones.map((zone) => at(zone, privateBits))];
}
