/** Puts the clock of a program ahead: `NODE_OPTIONS=--import=FILE`, with the milliseconds in TEST_CLOCK_AHEAD_MS. */
const { now } = Date;
const aheadMs = Number(process.env.TEST_CLOCK_AHEAD_MS);

class ShiftedDate extends Date {
  constructor(...given: unknown[]) {
    super(...((given.length === 0 ? [ShiftedDate.now()] : given) as [number]));
  }

  static override now(): number {
    return now() + aheadMs;
  }
}

Object.assign(globalThis, { Date: ShiftedDate });
