import type { ChangeableDataset } from "../dataset/datasets.ts";

/** How an answer names the transaction that a change was recorded by; a change of nothing has none. */
export function transactionOf({ commits }: Pick<ChangeableDataset, "commits">): { readonly transaction_id?: string } {
  return commits.transactionName === undefined ? {} : { transaction_id: commits.transactionName };
}
