import { z } from "zod";
import { characters, text } from "../bounds.ts";
import { defineContract, onNamespace, onPath } from "../contract.ts";
import { commonRequest, pageQuery } from "../fields.ts";
import { timeMillis } from "../management/fields.ts";

const withValue = z.object({
  ...commonRequest,
  value: text(characters.credential)
    .min(1)
    // The value becomes an environment variable.
    .refine((value) => !value.includes("\0"), "must not contain a NUL")
    .describe("The value, which no response to clients contains."),
});
const name = z.string().describe("The name of the secret.");
const empty = z.object({});

export const createSecret = defineContract({
  operationId: "CreateSecret",
  summary: "Create a secret for Functions; the catalog stores its value encrypted",
  path: "/v1/secret/{id}/create",
  body: withValue,
  response: empty,
  errors: [404, 406, 409],
  access: onNamespace("admin"),
});

export const alterSecret = defineContract({
  operationId: "AlterSecret",
  summary: "Replace the value of a secret; the next jobs use it",
  path: "/v1/secret/{id}/alter",
  body: withValue,
  response: empty,
  errors: [404, 406],
  access: onNamespace("admin"),
});

export const describeSecret = defineContract({
  operationId: "DescribeSecret",
  summary: "Describe a secret without its value",
  path: "/v1/secret/{id}/describe",
  response: z.object({
    name,
    created_at_millis: timeMillis,
    updated_at_millis: timeMillis.describe("The time of the latest value, in milliseconds since the epoch."),
  }),
  errors: [404],
  access: onNamespace("reader"),
});

export const dropSecret = defineContract({
  operationId: "DropSecret",
  summary: "Drop a secret; the next jobs of Functions that use it fail",
  path: "/v1/secret/{id}/drop",
  response: empty,
  errors: [404],
  access: onNamespace("admin"),
});

export const listSecrets = defineContract({
  operationId: "ListSecrets",
  summary: "List the names of the secrets of a namespace",
  methods: ["GET"],
  path: "/v1/namespace/{id}/secret/list",
  query: z.object(pageQuery),
  response: z.object({
    secrets: z.array(z.object({ name })).describe("The secrets in the order of their names."),
    page_token: z.string().optional(),
  }),
  errors: [404],
  access: onPath("reader"),
});
