/** Operations that the process that writes carries out for the others. */
import { CatalogError } from "@tiltyard/protocol";
import { expect, test } from "vitest";
import { carryOutOn } from "../../service/http/by-writer.ts";
import type { LoopRequest } from "../../service/http/loop-delay.ts";
import { createLog } from "../../service/log.ts";
import type { Catalog } from "../../service/operations/handler.ts";

test("an operation has its own name, also where what holds the event loop is logged", async () => {
  const begun: LoopRequest[] = [];
  const loopWatch = { begin: (each: LoopRequest) => void begun.push(each), end: () => {}, [Symbol.dispose]: () => {} };
  const catalog = new Proxy({} as Catalog, {
    get: () => {
      throw new CatalogError("InvalidInput", "refused");
    },
  });
  const outcome = await carryOutOn(
    catalog,
    loopWatch,
    createLog("silent"),
  )({
    operation: "createNamespace",
    request: { id: ["n"] },
    principal: { name: "ada", grants: [] },
    requestId: "r",
  });
  expect(outcome).toMatchObject({ error: { kind: "InvalidInput", message: "refused" } });
  expect(begun).toMatchObject([{ operation: "CreateNamespace", requestId: "r" }]);
});
