import { z } from "zod";
import { defineContract } from "../contract.ts";
import { context, count, pageQuery, pageResponse } from "../fields.ts";
import { Grant, PrincipalName } from "./fields.ts";

/** The right to manage who may call the catalog at all. */
export const onRoot = () => [{ role: "admin", object: [] }] as const;

export const describeCaller = defineContract({
  operationId: "DescribeCaller",
  summary: "Tell who the caller is, and which roles it has",
  methods: ["GET"],
  path: "/management/v1/caller/describe",
  response: z
    .object({ context, principal: PrincipalName, grants: z.array(Grant) })
    .meta({ id: "DescribeCallerResponse" }),
  access: () => [],
});

export const listPrincipals = defineContract({
  operationId: "ListPrincipals",
  summary: "List who has an API key or a role, by name",
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
