import { z } from "zod";
import { createDocument, type ZodOpenApiOperationObject, type ZodOpenApiPathsObject } from "zod-openapi";
import { bodies } from "../bounds.ts";
import { type AnyContract, arrowTypeOf, commonErrors, noContent } from "../contract.ts";
import { ErrorResponse, type ErrorStatus, titleOf } from "../errors.ts";
import { delimiter, pathId } from "../fields.ts";
import { httpRequest, requestShape } from "../http-request.ts";
import { formatIdentifier } from "../identifier.ts";
import { ownValue } from "../own-value.ts";
import { type Example, examples } from "./examples.ts";
import { fieldDescriptions } from "./field-descriptions.ts";
import { descriptionOf } from "./operation-descriptions.ts";

const binary = { type: "string", format: "binary" } as const;

export interface DocumentedOperations {
  readonly title: string;
  readonly description: string;
  readonly contracts: Readonly<Record<string, AnyContract>>;
}

/** Creates the OpenAPI document of operations from their contracts. */
export function openApiDocument({
  title,
  description,
  contracts,
  tokenUrl,
}: DocumentedOperations & { readonly tokenUrl: string | undefined }) {
  const paths: ZodOpenApiPathsObject = {};
  for (const [name, contract] of Object.entries(contracts))
    for (const method of contract.methods) {
      const example = examples.find(({ operation }) => operation === name);
      const operation = operationOf(contract, method, example);
      paths[contract.path] = { ...ownValue(paths, contract.path), [method.toLowerCase()]: operation };
    }
  const document = createDocument({
    openapi: "3.1.0",
    info: {
      title,
      version: "1.0.0",
      description,
      license: { name: "Apache-2.0", url: "https://www.apache.org/licenses/LICENSE-2.0.html" },
    },
    servers: [{ url: "/" }],
    security: [{ BearerAuth: [] }, { ApiKeyAuth: [] }, ...(tokenUrl === undefined ? [] : [{ OAuth2: [] }])],
    paths,
    components: {
      securitySchemes: {
        BearerAuth: { type: "http", scheme: "bearer" },
        ApiKeyAuth: { type: "apiKey", in: "header", name: "x-api-key" },
        ...(tokenUrl !== undefined && {
          OAuth2: { type: "oauth2", flows: { clientCredentials: { tokenUrl: tokenUrl, scopes: {} } } } as const,
        }),
      },
    },
  });
  describeFields(document);
  return document;
}

/** Adds the shared descriptions to parameters and fields without a description. */
function describeFields(document: ReturnType<typeof createDocument>): void {
  const schemas = document.components?.schemas ?? {};
  for (const [name, schema] of Object.entries(schemas)) describeProperties(schema, name.replace(/Output$/, ""));
  for (const operation of Object.values(document.paths ?? {}).flatMap((item) => [item.get, item.post])) {
    for (const parameter of operation?.parameters ?? [])
      if ("name" in parameter && !isDescribed(parameter as Field)) describe(parameter, parameter.name, "");
    describeProperties(operation?.requestBody, "");
    describeProperties(operation?.responses, "");
  }

  function describeProperties(schema: unknown, path: string): void {
    if (typeof schema !== "object" || schema === null) return;
    for (const [key, value] of Object.entries(schema))
      if (key !== "properties") describeProperties(value, path);
      else
        for (const [name, field] of Object.entries<object>(value)) {
          if (!isDescribed(field)) describe(field, name, path);
          describeProperties(field, `${path}.${name}`);
        }
  }

  function describe(field: object, name: string, path: string): void {
    const description = ownValue(fieldDescriptions, `${path}.${name}`) ?? ownValue(fieldDescriptions, name);
    if (description !== undefined) Object.assign(field, { description });
  }

  /** Reports whether a field, the schema that it refers to, or an alternative has a description. */
  function isDescribed(field: Field): boolean {
    const referred = ownValue(schemas, field.$ref?.split("/").at(-1) ?? "") as Field | undefined;
    return (
      field.description !== undefined ||
      (field.schema !== undefined && isDescribed(field.schema)) ||
      (referred !== undefined && isDescribed(referred)) ||
      (field.anyOf?.some(isDescribed) ?? false)
    );
  }
}

interface Field {
  readonly $ref?: string;
  readonly description?: string;
  readonly schema?: Field;
  readonly anyOf?: readonly Field[];
}

function operationOf(
  contract: AnyContract,
  method: "GET" | "POST",
  example: Example | undefined,
): ZodOpenApiOperationObject {
  const { id, indexName, ...fields } = example?.request ?? {};
  const { json } = example === undefined ? {} : httpRequest(requestShape(contract), fields);
  const withExample = (schema: z.ZodType, value: unknown) =>
    value === undefined ? schema : schema.meta({ example: value });

  const names = [...contract.path.matchAll(/\{(\w+)\}/g)].map(([, name = ""]) => name);
  const primary = contract.methods.includes("POST") ? "POST" : "GET";
  return {
    // An operation id must be unique in a document, so only the primary method has it.
    ...(method === primary && { operationId: contract.operationId }),
    summary: contract.summary,
    description: descriptionOf(contract),
    tags: [tagOf(contract)],
    requestParams: {
      ...(names.length > 0 && {
        path: z.object(
          Object.fromEntries(
            names.map((name) =>
              name === "id"
                ? [name, withExample(pathId, id && formatIdentifier(id))]
                : [name, withExample(z.string().min(1), indexName)],
            ),
          ),
        ),
      }),
      query: z.object({
        ...Object.fromEntries(
          Object.entries<z.ZodType>(contract.query.shape).map(([name, schema]) => [
            name,
            withExample(schema, ownValue(fields, name)),
          ]),
        ),
        delimiter: delimiter.optional(),
      }),
    },
    ...(method === "POST" && {
      requestBody: requestBodyOf(contract, json === undefined ? undefined : JSON.parse(json)),
    }),
    responses: responsesOf(contract, method, example?.response),
  };
}

/** Returns the resource of an operation: the segment of its path after the version. */
function tagOf({ path }: AnyContract): string {
  return /\/v1\/(\w+)/.exec(path)?.[1]?.replace("_", " ") ?? "";
}

function requestBodyOf(contract: AnyContract, example: unknown): NonNullable<ZodOpenApiOperationObject["requestBody"]> {
  const rows = { "application/vnd.apache.arrow.stream": { schema: binary } };
  if (contract.content === "arrow") return { content: rows };
  // If no field is required, an absent body and `null` are the empty request.
  const required = !contract.body.safeParse({}).success;
  const whole = contract.bareField === undefined ? contract.body : ownValue(contract.body.shape, contract.bareField);
  const schema = required ? whole : contract.body.nullable();
  const { bytes, values, keys, depth } = bodies[contract.bodySize];
  const description = `At most ${bytes} bytes, ${values} values, ${keys} keys and ${depth} levels. A null means that an optional field is absent.`;
  return {
    description,
    required,
    content: { "application/json": { schema, example }, ...(contract.content === "either" && rows) },
  };
}

function responsesOf(
  contract: AnyContract,
  method: "GET" | "POST",
  example: unknown,
): ZodOpenApiOperationObject["responses"] {
  const success = { description: "Success", ...contentOf(contract.response, example) };
  const all = new Set<ErrorStatus>([...commonErrors, ...contract.errors]);
  // A GET has no body that could be too large.
  if (method === "GET") all.delete(413);
  return {
    [`${contract.status}`]: success,
    ...Object.fromEntries(
      [...all].sort().map((status) => [
        `${status}`,
        {
          description: titleOf(status, contract.operationId),
          content: { "application/json": { schema: ErrorResponse } },
        },
      ]),
    ),
  };
}

function contentOf(response: z.ZodType, example: unknown) {
  if (response === noContent) return {};
  const arrowType = arrowTypeOf(response);
  if (arrowType !== undefined) return { content: { [arrowType]: { schema: binary } } };
  return { content: { "application/json": { schema: response, example } } };
}
