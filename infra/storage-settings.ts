import { z } from "zod";

/** What a cloud keeps for the stack, and how. */
const everywhere = {
  deletionProtection: z.boolean().default(true),
  keepData: z.boolean().default(false),
  /** How many days objects that were replaced or deleted can be brought back; they cannot when absent. */
  objectVersionDays: z.int().positive().optional(),
};

export const StorageOnGke = {
  ...everywhere,
  /** A key that is there, for buckets, disks, the database and the secrets of Kubernetes; Google's own when absent. */
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
  /** A key that is there, for buckets, disks, the database and the secrets of Kubernetes; AWS' own when absent. */
  encryptionKey: z
    .string()
    .regex(
      /^arn:aws[-a-z]*:kms:[^:]+:\d{12}:key\/\S+$/,
      "must be the ARN of a key, like arn:aws:kms:REGION:ACCOUNT:key/ID",
    )
    .optional(),
};
