import type { EksConfig } from "../../config.ts";

/** The settings of the AWS services of a cluster, whether the stack created the cluster or not. */
export type EksServicesConfig = Pick<
  EksConfig,
  | "clusterName"
  | "region"
  | "bucket"
  | "deletionProtection"
  | "keepData"
  | "objectVersionDays"
  | "encryptionKey"
  | "imageCache"
  | "registrySignIn"
> & {
  readonly catalog: Pick<EksConfig["catalog"], "litestream">;
};
