import { z } from "zod";
import { defineContract } from "../contract.ts";
import { context, count, pageQuery, pageResponse } from "../fields.ts";
import { roles } from "../roles.ts";
import { Grant, PrincipalName } from "./fields.ts";

/** The right to manage the principals of the catalog, their keys and their roles. */
export const onRoot = () => [{ role: "admin", object: [] }] as const;

/** A grant of the caller. The key of a job has a role that no other principal can have. */
const CallerGrant = Grant.extend({ role: z.enum([...roles, "committer"]) }).meta({ id: "CallerGrant" });

export const describeCaller = defineContract({
  operationId: "DescribeCaller",
  summary: "Describe the caller and its roles",
  methods: ["GET"],
  path: "/management/v1/caller/describe",
  response: z
    .object({ context, principal: PrincipalName, grants: z.array(CallerGrant) })
    .meta({ id: "DescribeCallerResponse" }),
  access: () => [],
});

export const listPrincipals = defineContract({
  operationId: "ListPrincipals",
  summary: "List the principals that have an API key or a role, by name",
  methods: ["GET"],
  path: "/management/v1/principal/list",
  query: z.object(pageQuery),
  response: z
    .object({
      context,
      principals: z.array(
        z.object({ principal: PrincipalName, api_keys: count, grants: count }).meta({ id: "PrincipalSummary" }),
      ),
      ...pageResponse,
    })
    .meta({ id: "ListPrincipalsResponse" }),
  access: onRoot,
});
