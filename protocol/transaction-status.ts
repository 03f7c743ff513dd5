export const transactionStatuses = ["Queued", "Running", "Succeeded", "Failed", "Canceled"] as const;
export type TransactionStatus = (typeof transactionStatuses)[number];

/** The statuses of an open job. */
export const openStatuses: readonly TransactionStatus[] = ["Queued", "Running"];

/** Reports whether a job is open. */
export function isOpen({ status }: { readonly status: TransactionStatus }): boolean {
  return openStatuses.includes(status);
}
