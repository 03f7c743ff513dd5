import type { EksConfig } from "../../config.ts";

/** The settings of what AWS gives to a cluster, wherever the cluster came from. */
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
