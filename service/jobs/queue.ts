import { jobPriorities, managementContracts } from "@tiltyard/protocol";
import { type JobSummaryRecord, listQueue } from "../store/jobs.ts";
import type { Store } from "../store/store.ts";

/** Reports whether no attempt at a job was claimed yet. */
export function isQueued({ status, attempt }: Pick<JobSummaryRecord, "status" | "attempt">): boolean {
  return status === "Queued" && attempt === 0;
}

/**
 * Returns the expected positions of the jobs that wait for a runner, by their ids. Like a runner, it begins with the
 * principal that has the fewest running jobs, and with the most urgent and oldest of its jobs.
 */
export function queuePositions(store: Store): Promise<ReadonlyMap<string, number>> {
  return store.read.cached("positions in the queue", async () => {
    const open = await listQueue(store.read, managementContracts.openJob.operationId);
    const turns = new Map<string, number>();
    const takeTurn = (principal: string) => {
      const turn = turns.get(principal) ?? 0;
      turns.set(principal, turn + 1);
      return turn;
    };
    for (const job of open) if (!isQueued(job)) takeTurn(job.principal);
    const urgency = ({ priority }: (typeof open)[number]) => jobPriorities.indexOf(priority);
    const waiting = open.filter(isQueued);
    const turnOf = new Map(
      waiting
        .toSorted((one, other) => urgency(one) - urgency(other))
        .map(({ id, principal }) => [id, takeTurn(principal)]),
    );
    const order = waiting.toSorted((one, other) => (turnOf.get(one.id) ?? 0) - (turnOf.get(other.id) ?? 0));
    return new Map(order.map(({ id }, index) => [id, index + 1]));
  });
}
