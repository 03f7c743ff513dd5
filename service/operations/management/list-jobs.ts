import { parseIdentifier } from "@tiltyard/protocol";
import { toJob } from "../../domain/job-summary.ts";
import { keyText, readScannedPage } from "../../domain/page.ts";
import { listJobs as list } from "../../store/transaction-lists.ts";
import type { Handler } from "../handler.ts";

/** The maximum number of jobs of a page. Each may have 256 KiB of parameters. */
const pageSizeMax = 100;

export const listJobs: Handler<"listJobs"> = async (request, { store }) => {
  const { id: within, delimiter, principal, status: statuses, ascending = false } = request;
  const table = request.table === undefined ? undefined : parseIdentifier(request.table, delimiter);
  const filter = { within, table, principal, statuses };
  const { items, ...page } = await readScannedPage(
    { name: `jobs ${ascending}`, key: keyText },
    request,
    async (after, limit) => {
      const { records, next } = await list(store.read, filter, { after, limit, ascending });
      return { items: [...records], next };
    },
    ({ id }) => id,
    pageSizeMax,
  );
  return { jobs: items.map((record) => toJob(record, delimiter)), ...page };
};
