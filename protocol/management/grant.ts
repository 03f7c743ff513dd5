import { z } from "zod";
import { defineContract, onPath } from "../contract.ts";
import { commonRequest, context, pageQuery, pageResponse } from "../fields.ts";
import { roles } from "../roles.ts";
import { Grant, PrincipalName } from "./fields.ts";

export const listGrants = defineContract({
  operationId: "ListGrants",
  summary: "List the grants on a namespace and its descendants, by principal",
  methods: ["GET"],
  path: "/management/v1/namespace/{id}/grant/list",
  query: z.object({ ...pageQuery, principal: PrincipalName.optional() }),
  response: z
    .object({
      context,
      grants: z.array(z.object({ principal: PrincipalName, ...Grant.shape }).meta({ id: "PrincipalGrant" })),
      ...pageResponse,
    })
    .meta({ id: "ListGrantsResponse" }),
  access: onPath("admin"),
});

export const putGrant = defineContract({
  operationId: "PutGrant",
  summary: "Grant a principal a role on a namespace; the grant replaces an earlier one",
  path: "/management/v1/namespace/{id}/grant/put",
  body: z.object({ ...commonRequest, principal: PrincipalName, role: z.enum(roles) }).meta({ id: "PutGrantRequest" }),
  response: z.object({ context, transaction_id: z.string() }).meta({ id: "PutGrantResponse" }),
  access: onPath("admin"),
});

export const revokeGrant = defineContract({
  operationId: "RevokeGrant",
  summary: "Revoke the role of a principal on a namespace",
  path: "/management/v1/namespace/{id}/grant/revoke",
  body: z.object({ ...commonRequest, principal: PrincipalName }).meta({ id: "RevokeGrantRequest" }),
  response: z.object({ context, transaction_id: z.string() }).meta({ id: "RevokeGrantResponse" }),
  errors: [404],
  access: onPath("admin"),
});
