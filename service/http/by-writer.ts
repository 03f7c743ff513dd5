import { type AnyContract, CatalogError, mayChange } from "@tiltyard/protocol";
import type { Log } from "../log.ts";
import type { Catalog, Handler } from "../operations/handler.ts";
import type { Call, Outcome, Writer } from "../processes/calls.ts";
import { WriterNeeded } from "../store/writer-needed.ts";
import { allOperations, type Operation } from "./all-operations.ts";
import { explain } from "./answer.ts";
import type { LoopWatch } from "./loop-delay.ts";
import { noRows } from "./operation.ts";

/** Whether requests are handed over as they come: open tables and large bodies take memory, which one process has. */
export function isHandedOver({ onRows, bodySize }: AnyContract): boolean {
  return onRows || bodySize === "large";
}

/** Has the process that writes carry out an operation that changes something, or that finds something to change. */
export function byWriter(operation: string, { contract, handler }: Operation, writer: Writer): Handler<AnyContract> {
  const carryOut: Handler<AnyContract> = (request, _, { principal, requestId }) =>
    writer.carryOut({ operation, request, principal, requestId });
  if (mayChange(contract)) return carryOut;
  return async (request, catalog, caller) => {
    try {
      return await handler(request, catalog, caller);
    } catch (error) {
      if (error instanceof WriterNeeded) return carryOut(request, catalog, caller);
      throw error;
    }
  };
}

/** Carries out operations whose requests other processes took. They log and count them. */
export function carryOutOn(catalog: Catalog, loopWatch: LoopWatch, log: Log): (call: Call) => Promise<Outcome> {
  return async ({ operation, request, principal, requestId }) => {
    const found = allOperations.get(operation);
    const underWay = { operation: found?.contract.operationId ?? operation, requestId, bodyBytes: 0 };
    loopWatch.begin(underWay);
    try {
      if (found === undefined) throw new CatalogError("RouteNotFound", `there is no operation ${operation}`);
      return { answer: await found.handler(request as never, catalog, { principal, requestId, body: noRows }) };
    } catch (error) {
      const { kind, message, retryAfterSeconds } = explain(error, requestId, log);
      return { error: { kind, message, retryAfterSeconds } };
    } finally {
      loopWatch.end(underWay);
    }
  };
}
