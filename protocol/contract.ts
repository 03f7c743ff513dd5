import { z } from "zod";
import type { BodySize } from "./bounds.ts";
import type { ErrorStatus } from "./errors.ts";
import { commonRequest } from "./fields.ts";
import { defaultDelimiter, type Identifier } from "./identifier.ts";
import type { Role, RoleOfJob } from "./roles.ts";

/** A right that a request needs. */
export interface Access {
  readonly role: Role;
  /** An alternative role that does not include `role`. */
  readonly orRole?: Role | RoleOfJob;
  /**
   * The object; `anywhere` for a role on any object, which the path of a batch needs because its objects are named only
   * in the body.
   */
  readonly object: Identifier | "anywhere";
}

/**
 * The definition of an operation without its implementation. The router, the OpenAPI document, the client, the access
 * checks and the metrics are derived from contracts.
 */
export interface Contract<
  Query extends z.ZodObject = z.ZodObject,
  Body extends z.ZodObject = z.ZodObject,
  Response extends z.ZodType = z.ZodType,
> {
  /** The operation id of the protocol. */
  readonly operationId: string;
  readonly summary: string;
  readonly methods: readonly ("GET" | "POST")[];
  /** The path with parameters in braces, such as `/v1/table/{id}/describe`. */
  readonly path: string;
  readonly query: Query;
  /** The JSON body. An absent body, `{}` and `null` are all the empty request. */
  readonly body: Body;
  /** The content of a POST: JSON according to `body`, an Arrow stream, or either, depending on the content type. */
  readonly content: "json" | "arrow" | "either";
  /**
   * The field of `body` that is the whole body on the wire, without an enclosing object. The response then has no
   * enclosing object either.
   */
  readonly bareField: string | undefined;
  /** The schema of the JSON response; `noContent`, `arrowFile` or `arrowStream` for any other response. */
  readonly response: Response;
  /** The HTTP status of success. */
  readonly status: 200 | 201 | 202;
  /** The error statuses of the operation in addition to `commonErrors`. */
  readonly errors: readonly ErrorStatus[];
  /** The size limit of the JSON body. */
  readonly bodySize: BodySize;
  /**
   * Returns the rights that a request needs for the object in its path. They are checked before the body is read. All
   * rights depend only on the request, so that a rejection does not reveal which objects exist.
   */
  readonly access: (path: PathFields) => readonly Access[];
  /** Returns the additional rights that the query and the body require. */
  readonly bodyAccess: (request: RequestFields<Query, Body>) => readonly Access[];
  /** Reports whether repeating a request with the same fields changes nothing more and returns the same response. */
  readonly idempotent: boolean;
  /**
   * Reports whether the operation reads or writes rows. An operator can disable such operations, which are then
   * rejected with 406.
   */
  readonly onRows: boolean;
}

/** The fields of any operation in its path and its query. */
export type PathFields = {
  /** The parsed id of the path; `[]` for an operation without one. */
  readonly id: Identifier;
  /** The name of the index in the path; empty for an operation without one. */
  readonly indexName: string;
  /** The delimiter of identifiers in this request and its response. */
  readonly delimiter: string;
  /** The namespace of LanceDB's client, with which `id` begins; absent for other clients. */
  readonly database?: Identifier | undefined;
};

/** Returns the identifier of an object that a body names in the database of the client. */
export function inDatabase({ database = [] }: Pick<PathFields, "database">, id: Identifier): Identifier {
  return [...database, ...id];
}

/**
 * Removes index signatures. Zod infers one of type `never` for an object without fields, which would conflict with all
 * added fields.
 */
type Named<Fields> = { [Name in keyof Fields as string extends Name ? never : Name]: Fields[Name] };

type RequestFields<Query extends z.ZodObject, Body extends z.ZodObject> = Omit<
  Named<z.infer<Query>>,
  keyof z.infer<Body>
> &
  Omit<z.infer<Body>, "id"> &
  PathFields;

/** A validated request with unknown types of its fields. */
export type AnyRequest = PathFields & Readonly<Record<string, unknown>>;

/** A contract with unknown types of its fields. A method accepts the functions of all contracts. */
export type AnyContract = Omit<Contract, "bodyAccess"> & { bodyAccess(request: AnyRequest): readonly Access[] };

/** The parsed request of a contract: the id of the path with the fields of the query and the body in one object. */
export type RequestOf<C> = C extends { readonly bodyAccess: (request: infer Request) => readonly Access[] }
  ? Request
  : never;

/** The query of a contract. A schema without fields has a type that forbids every field, which this type replaces. */
export type QueryOf<C extends AnyContract> = string extends keyof z.infer<C["query"]>
  ? object
  : Partial<z.infer<C["query"]>>;

/** The response of a contract; `undefined` for a response without a body. */
export type ResponseOf<C extends AnyContract> = z.infer<C["response"]>;

/** A value of which no part may be changed, because it may also be a part of a record or a cache. */
export type ReadonlyDeep<Value> = Value extends ReadableStream
  ? Value
  : Value extends object
    ? { readonly [Name in keyof Value]: ReadonlyDeep<Value[Name]> }
    : Value;

/** The response of a contract as its handler returns it. */
export type AnswerOf<C extends AnyContract> = ReadonlyDeep<ResponseOf<C>>;

/** The error statuses that any operation may return. */
export const commonErrors = [400, 401, 403, 413, 500, 503] as const satisfies readonly ErrorStatus[];

/** The response schema of an operation that returns only a status. */
export const noContent = z.undefined();

/** The response schema of an operation that streams an Arrow IPC file. */
export const arrowFile = z.custom<ReadableStream<Uint8Array>>((value) => value instanceof ReadableStream);
/** The response schema of an operation that returns an Arrow IPC stream. */
export const arrowStream = z.custom<ReadableStream<Uint8Array>>((value) => value instanceof ReadableStream);

/** Returns the media type of an Arrow response; undefined for other responses. */
export function arrowTypeOf(response: z.ZodType): string | undefined {
  if (response === arrowFile) return "application/vnd.apache.arrow.file";
  return response === arrowStream ? "application/vnd.apache.arrow.stream" : undefined;
}

const noFields = z.object({});
const commonFields = z.object(commonRequest);

/** Reports whether an operation changes nothing. */
export function onlyReads({ methods, access }: AnyContract): boolean {
  const anyPath: PathFields = { id: ["namespace", "name"], indexName: "index", delimiter: defaultDelimiter };
  return !methods.includes("POST") || access(anyPath).every(({ role }) => role === "reader");
}

/**
 * Reports whether a client may retry an operation whose response was lost, because the operation only reads or its
 * contract declares it idempotent.
 */
export function isIdempotent(contract: AnyContract): boolean {
  return contract.idempotent || onlyReads(contract);
}

/** Creates a contract with defaults that most contracts share: a POST with a JSON body and the status 200. */
export function defineContract<
  Query extends z.ZodObject = typeof noFields,
  Body extends z.ZodObject = typeof commonFields,
  Response extends z.ZodType = typeof noContent,
  const BareField extends string | undefined = undefined,
>(
  contract: Pick<Contract, "operationId" | "summary" | "path" | "access"> &
    Partial<Pick<Contract, "methods" | "content" | "status" | "errors" | "idempotent" | "onRows" | "bodySize">> & {
      readonly bareField?: BareField;
      readonly query?: Query;
      readonly body?: Body;
      readonly response?: Response;
      readonly bodyAccess?: Contract<Query, Body, Response>["bodyAccess"];
    },
): Contract<Query, Body, Response> & { readonly bareField: BareField } {
  return {
    methods: ["POST"],
    content: "json",
    status: 200,
    errors: [],
    idempotent: false,
    onRows: false,
    bodySize: "small",
    bodyAccess: () => [],
    ...contract,
    // An absent schema has the default of its type parameter.
    bareField: contract.bareField as BareField,
    query: contract.query ?? (noFields as unknown as Query),
    body: contract.body ?? (commonFields as unknown as Body),
    response: contract.response ?? (noContent as unknown as Response),
  };
}

/** The access rule of most operations: a role on the object in the path. */
export function onPath(role: Role, orRole?: Access["orRole"]) {
  return ({ id }: { readonly id: Identifier }): readonly Access[] => [{ role, object: id, ...(orRole && { orRole }) }];
}

/** The access rule of a part of a namespace, such as a Function or a secret: a role on the namespace. */
export function onNamespace(role: Role) {
  return ({ id }: { readonly id: Identifier }): readonly Access[] => [{ role, object: id.slice(0, -1) }];
}

/** The access rule of the path of a batch: a role on any object. */
export function anywhere(role: Role) {
  return (): readonly Access[] => [{ role, object: "anywhere" }];
}
