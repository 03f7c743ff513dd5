import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { DiskThread } from "../../service/storage/disk-thread.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

test.each([
  ["in the thread", 1],
  ["without one", 100],
])(
  "%s a file that is there is persisted, one that is not is undefined, and an error keeps its code",
  async (_, fromCalls) => {
    const folder = temporaryFolder("tiltyard-disk-");
    const file = join(folder, "manifest");
    writeFileSync(file, "four");
    const thread = new DiskThread(undefined, fromCalls);
    const calls = [
      thread.run("persist", file),
      thread.run("persist", join(folder, "absent")),
      thread.run("sync", join(folder, "absent")),
      thread.run("sync", folder),
    ];
    expect(await Promise.allSettled(calls)).toMatchObject([
      { status: "fulfilled", value: { sizeBytes: 4 } },
      { status: "fulfilled", value: undefined },
      { status: "rejected", reason: { code: "ENOENT" } },
      { status: "fulfilled", value: undefined },
    ]);
    await thread.run("delete", file);
    await thread.run("delete", file);
    expect(existsSync(file)).toBe(false);
  },
);

test("calls of a thread that ends fail, and the next one has another thread", async () => {
  const folder = temporaryFolder("tiltyard-disk-");
  const broken = join(folder, "broken.mjs");
  writeFileSync(
    broken,
    'import { parentPort } from "node:worker_threads"; parentPort.on("message", () => process.exit(3));',
  );
  const whole = DiskThread.program;
  const programs = [broken, whole];
  const thread = new DiskThread(() => programs.shift() ?? whole, 1);
  const calls = [thread.run("sync", folder), thread.run("persist", folder)];
  for (const each of await Promise.allSettled(calls))
    expect(each).toMatchObject({ reason: { message: "the thread of calls to the disk ended: exit code 3" } });
  await thread.run("sync", folder);
});

test("the thread begins when there are many calls at once", async () => {
  const folder = temporaryFolder("tiltyard-disk-");
  let begun = 0;
  const thread = new DiskThread(() => {
    begun += 1;
    return DiskThread.program;
  }, 3);
  await Promise.all([thread.run("sync", folder), thread.run("sync", folder)]);
  expect(begun).toBe(0);
  await Promise.all([thread.run("sync", folder), thread.run("sync", folder), thread.run("sync", folder)]);
  expect(begun).toBe(1);
});
