import { z } from "zod";

/** The settings of the stored data of a stack. */
const everywhere = {
  deletionProtection: z.boolean().default(true),
  keepData: z.boolean().default(false),
  /** The number of days for which replaced or deleted objects can be restored; disabled when absent. */
  objectVersionDays: z.int().positive().optional(),
};

export const StorageOnGke = {
  ...everywhere,
  /** An existing key for buckets, disks, the database and the secrets of Kubernetes; Google's own when absent. */
  encryptionKey: z
    .string()
    .regex(
      /^projects\/[^/]+\/locations\/[^/]+\/keyRings\/[^/]+\/cryptoKeys\/[^/]+$/,
      "must be projects/PROJECT/locations/LOCATION/keyRings/RING/cryptoKeys/KEY",
    )
    .optional(),
};

export const StorageOnEks = {
  ...everywhere,
  /** An existing key for buckets, disks, the database and the secrets of Kubernetes; AWS's own when absent. */
  encryptionKey: z
    .string()
    .regex(
      /^arn:aws[-a-z]*:kms:[^:]+:\d{12}:key\/\S+$/,
      "must be the ARN of a key, like arn:aws:kms:REGION:ACCOUNT:key/ID",
    )
    .optional(),
};
