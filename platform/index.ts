export * from "./agreed-values.ts";
export { withRequestTimeout } from "./kubernetes-timeout.ts";
export { amountOf } from "./quantity.ts";
export * from "./ray-cluster.ts";
export { StackOutputs, secretOutputs } from "./stack-outputs.ts";
