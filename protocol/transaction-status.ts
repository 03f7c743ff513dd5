export const transactionStatuses = ["Queued", "Running", "Succeeded", "Failed", "Canceled"] as const;
export type TransactionStatus = (typeof transactionStatuses)[number];
