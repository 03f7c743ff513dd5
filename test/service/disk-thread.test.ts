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
      { status: "fulfilled", value: { object: { sizeBytes: 4 } } },
      { status: "fulfilled", value: undefined },
      { status: "rejected", reason: { code: "ENOENT" } },
      { status: "fulfilled", value: undefined },
    ]);
    await thread.run("delete", file);
    await thread.run("delete", file);
    expect(existsSync(file)).toBe(false);
  },
);

test.each([
  ["ends", 'import { parentPort } from "node:worker_threads"; parentPort.on("message", () => process.exit(3));'],
  ["cannot begin", "import 'nowhere';"],
])("calls of a thread that %s are made without it, and those that follow", async (_, text) => {
  const folder = temporaryFolder("tiltyard-disk-");
  const program = join(folder, "program.mjs");
  writeFileSync(program, text);
  const thread = new DiskThread(program, 1);
  const absent = join(folder, "absent");
  const calls = [thread.run("persist", program), thread.run("sync", absent), thread.run("delete", absent)];
  expect(await Promise.allSettled(calls)).toMatchObject([
    { status: "fulfilled", value: { object: { sizeBytes: text.length } } },
    { status: "rejected", reason: { code: "ENOENT" } },
    { status: "fulfilled" },
  ]);
  expect(await thread.run("persist", program)).toMatchObject({ object: { sizeBytes: text.length } });
});

test("the thread begins when there are many calls at once", async () => {
  const folder = temporaryFolder("tiltyard-disk-");
  const unanswered = join(folder, "unanswered.mjs");
  const begun = join(folder, "begun");
  writeFileSync(unanswered, `import { writeFileSync } from "node:fs"; writeFileSync(${JSON.stringify(begun)}, "");`);
  const thread = new DiskThread(unanswered, 3);
  await Promise.all([thread.run("sync", folder), thread.run("sync", folder)]);
  expect(existsSync(begun)).toBe(false);
  await Promise.all([thread.run("sync", folder), thread.run("sync", folder), thread.run("sync", folder)]);
  expect(existsSync(begun)).toBe(true);
});
