/** Generates the types of the client's operations: `npm run types` runs it before the check, and packages contain them. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { type AnyContract, catalogContracts, managementContracts } from "@tiltyard/protocol";
import { openApiDocument } from "@tiltyard/protocol/api-document";

/** A part of an OpenAPI document. */
interface Schema {
  readonly $ref?: string;
  readonly anyOf?: readonly Schema[];
  readonly description?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly content?: Readonly<Record<string, { readonly schema?: Schema }>>;
}
interface Operation {
  readonly operationId?: string;
  readonly summary: string;
  readonly description: string;
  readonly parameters?: readonly (Schema & { readonly name: string; readonly in: string; readonly schema: Schema })[];
  readonly requestBody?: Schema;
  readonly responses: Readonly<Record<string, Schema>>;
}
type Fields = readonly (readonly [name: string, description: string])[];

const lineMax = 120;
/** The fields that the client's own types describe. */
const common = ["id", "identity", "context", "delimiter"];

export function writeClientTypes(): void {
  const file = join(import.meta.dirname, "../client/catalog/documented-operations.ts");
  writeFileSync(file, clientTypes({ CatalogClient: catalogContracts, ManagementClient: managementContracts }));
}

/**
 * Returns a TypeScript module with the types of the client's operations. It adds only documentation to the types that
 * the contracts imply: in an intersection, editors show the comments of all parts.
 */
function clientTypes(registries: Readonly<Record<string, Readonly<Record<string, AnyContract>>>>): string {
  const clients = Object.entries(registries).map(([client, contracts]) => {
    const { paths = {}, components } = openApiDocument({ title: "", description: "", contracts, tokenUrl: undefined });
    const all = Object.values(paths).flatMap((path) => [path.get, path.post]) as (Operation | undefined)[];
    // A body that may be absent is the first alternative.
    const resolve = (schema: Schema | undefined): Schema | undefined =>
      schema?.$ref === undefined
        ? (schema?.anyOf?.map(resolve)[0] ?? schema)
        : resolve(components?.schemas?.[schema.$ref.split("/").at(-1) ?? ""] as Schema | undefined);
    const fieldsOf = (part: Schema | undefined): Fields =>
      Object.entries(resolve(part?.content?.["application/json"]?.schema)?.properties ?? {}).map(([name, field]) => [
        name,
        field.description ?? resolve(field)?.description ?? "",
      ]);
    const operations = Object.keys(contracts).map((name) => {
      const operation = all.find((each) => each?.operationId === contracts[name]?.operationId);
      if (operation === undefined) throw new Error(`the document has no operation ${name}`);
      const query = (operation.parameters ?? [])
        .filter((parameter) => parameter.in === "query")
        .map((each) => [each.name, each.description ?? each.schema.description ?? ""] as const);
      return {
        name,
        text: comment("  ", `${operation.summary}. ${operation.description}`),
        request: [...query, ...fieldsOf(operation.requestBody)],
        answer: fieldsOf(operation.responses["200"]),
      };
    });
    const types = operations.map(({ name, request, answer }) =>
      [typeOf(name, "Request", request), typeOf(name, "Answer", answer)].join(""),
    );
    const methods = operations.map(({ name, text }) => `${text}${methodOf(name)}`);
    return `${types.join("")}\nexport interface ${client} {\n${methods.join("")}}\n`;
  });
  return `/** The operations of the clients with their documentation. Generated from the contracts by packaging/client-types.ts. */

import type { CatalogContracts, ManagementContracts } from "@tiltyard/protocol";
import type { CallOptions, CatalogAnswer, CatalogRequest } from "./operation-types.ts";

type Operations = CatalogContracts & ManagementContracts;
type Request<Name extends keyof Operations> = CatalogRequest<Operations[Name]>;
type Answer<Name extends keyof Operations> = CatalogAnswer<Operations[Name]>;
${clients.join("")}`;
}

function typeOf(name: string, kind: "Request" | "Answer", fields: Fields): string {
  const start = `\nexport type ${pascal(name)}${kind} = ${kind}<"${name}">`;
  const described = new Map(fields.filter(([field, text]) => text !== "" && !common.includes(field)));
  if (described.size === 0) return `${start};\n`;
  const lines = [...described].map(([field, text]) => `${comment("  ", text)}  readonly ${field}?: unknown;\n`);
  return `${start} & {\n${lines.join("")}};\n`;
}

function methodOf(name: string): string {
  const [request, answer] = [`${pascal(name)}Request`, `${pascal(name)}Answer`];
  const line = `  readonly ${name}: (request: ${request}, options?: CallOptions) => Promise<${answer}>;\n`;
  return line.length <= lineMax + 1
    ? line
    : `  readonly ${name}: (\n    request: ${request},\n    options?: CallOptions,\n  ) => Promise<${answer}>;\n`;
}

function comment(indent: string, text: string): string {
  return `${indent}/** ${text.replaceAll(/\s+/g, " ").replaceAll("*/", "*\u200b/").trim()} */\n`;
}

const pascal = (name: string) => name.charAt(0).toUpperCase() + name.slice(1);

if (import.meta.main) writeClientTypes();
