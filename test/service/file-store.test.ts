import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { openFileStore } from "../../service/storage/file.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

test("a folder of many files is read in several turns of the event loop", async () => {
  const folder = temporaryFolder("tiltyard-files-");
  const names = Array.from({ length: 200 }, (_, number) => `file-${String(number).padStart(3, "0")}`);
  for (const name of names) writeFileSync(join(folder, name), name);

  let turns = 0;
  let isOver = false;
  const count = () => {
    turns += 1;
    if (!isOver) setImmediate(count);
  };
  setImmediate(count);
  const found: string[] = [];
  for await (const { key } of openFileStore().list(folder.slice(1))) found.push(key);
  isOver = true;

  expect(found.sort()).toEqual(names.map((name) => join(folder, name).slice(1)));
  expect(turns).toBeGreaterThanOrEqual(6);
});
