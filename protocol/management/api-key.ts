import { z } from "zod";
import { characters, text } from "../bounds.ts";
import { defineContract } from "../contract.ts";
import { commonRequest, context, pageQuery, pageResponse } from "../fields.ts";
import { Grant, KeyOwner, PrincipalName, timeMillis } from "./fields.ts";
import { onRoot } from "./principal.ts";

const ApiKey = z
  .object({ api_key_id: z.string(), principal: PrincipalName, created_at_millis: timeMillis })
  .meta({ id: "ApiKey", description: "An API key without its secret." });

export const createApiKey = defineContract({
  operationId: "CreateApiKey",
  summary: "Create an API key for a principal; only this response contains it",
  path: "/management/v1/api_key/create",
  body: z
    .object({
      ...commonRequest,
      principal: KeyOwner,
      grant: Grant.optional().describe("A role to grant to the principal in the same transaction."),
    })
    .meta({ id: "CreateApiKeyRequest" }),
  response: z
    .object({ context, transaction_id: z.string(), api_key_id: z.string(), principal: PrincipalName, key: z.string() })
    .meta({ id: "CreateApiKeyResponse" }),
  access: onRoot,
});

export const listApiKeys = defineContract({
  operationId: "ListApiKeys",
  summary: "List the API keys without their secrets, the oldest first",
  methods: ["GET"],
  path: "/management/v1/api_key/list",
  query: z.object({ ...pageQuery, principal: PrincipalName.optional() }),
  response: z.object({ context, api_keys: z.array(ApiKey), ...pageResponse }).meta({ id: "ListApiKeysResponse" }),
  access: onRoot,
});

export const revokeApiKey = defineContract({
  operationId: "RevokeApiKey",
  summary: "Revoke an API key",
  path: "/management/v1/api_key/revoke",
  body: z.object({ ...commonRequest, api_key_id: text(characters.name).min(1) }).meta({ id: "RevokeApiKeyRequest" }),
  response: z.object({ context, transaction_id: z.string() }).meta({ id: "RevokeApiKeyResponse" }),
  errors: [404],
  access: onRoot,
});
