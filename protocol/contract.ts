import { z } from "zod";
import type { BodySize } from "./bounds.ts";
import type { ErrorStatus } from "./errors.ts";
import { commonRequest } from "./fields.ts";
import { defaultDelimiter, type Identifier } from "./identifier.ts";

/** What a principal may do with an object and everything under it. A runner carries out the jobs there, and does nothing else. */
export const roles = ["reader", "writer", "admin", "runner"] as const;
export type Role = (typeof roles)[number];

/** The role of a job where Geneva keeps its records: it commits versions, and deletes, renames and replaces nothing. */
export type RoleOfJob = "committer";

/** The roles that each one includes. */
export const includedRoles = {
  reader: ["reader"],
  writer: ["reader", "writer", "committer"],
  admin: [...roles, "committer"],
  runner: ["runner"],
  committer: ["reader", "committer"],
} as const satisfies Readonly<Record<Role | RoleOfJob, readonly (Role | RoleOfJob)[]>>;

/** One right that a request needs. */
export interface Access {
  readonly role: Role;
  /** One that does as well, though it does not include the other. */
  readonly orRole?: Role | RoleOfJob;
  /** `anywhere` for a role on any object: what the path of a batch tells, which names its objects in its body. */
  readonly object: Identifier | "anywhere";
}

/**
 * What an operation of the protocol is, apart from doing it. The router, the OpenAPI
 * document, the client, the access checks and the metrics are made from contracts.
 */
export interface Contract<
  Query extends z.ZodObject = z.ZodObject,
  Body extends z.ZodObject = z.ZodObject,
  Response extends z.ZodType = z.ZodType,
> {
  /** The protocol's operation id. */
  readonly operationId: string;
  readonly summary: string;
  readonly methods: readonly ("GET" | "POST")[];
  /** With parameters in braces: `/v1/table/{id}/describe`. */
  readonly path: string;
  readonly query: Query;
  /** The JSON body. An absent body, `{}` and `null` are the same empty request. */
  readonly body: Body;
  /** What a POST carries: JSON as `body` says, an Arrow stream, or either, as its content type says. */
  readonly content: "json" | "arrow" | "either";
  /** The field of `body` that is the whole body on the wire, without the object around it; the answer is then bare too. */
  readonly bareField: string | undefined;
  /** The JSON answer; `noContent`, `arrowFile` or `arrowStream` for another one. */
  readonly response: Response;
  /** The HTTP status of success. */
  readonly status: 200 | 201 | 202;
  /** The statuses that the operation may answer besides success and `commonErrors`. */
  readonly errors: readonly ErrorStatus[];
  /** How much a JSON body may hold. */
  readonly bodySize: BodySize;
  /**
   * The rights that a request needs for the object in its path: they are checked before its body is read. All rights
   * depend on the request alone, so that a refusal does not reveal what exists.
   */
  readonly access: (path: PathFields) => readonly Access[];
  /** The rights that a request needs besides those, as its query and its body tell. */
  readonly bodyAccess: (request: RequestFields<Query, Body>) => readonly Access[];
  /** Whether a second request, with the same fields as the first, changes nothing more and answers the same. */
  readonly idempotent: boolean;
  /** Whether it reads or writes rows, which an operator may turn off; then it is answered with 406. */
  readonly onRows: boolean;
}

/** What the path and the query of any operation tell. */
export interface PathFields {
  /** The parsed id of the path; `[]` for an operation that has none. */
  readonly id: Identifier;
  /** The name of the index in the path; empty for an operation that has none. */
  readonly indexName: string;
  /** What joins the parts of identifiers in this request and its answer. */
  readonly delimiter: string;
  /** The namespace that LanceDB's client is in, with which `id` begins; absent for other clients. */
  readonly database?: Identifier | undefined;
}

/** Of an object without fields zod tells that any field of it is `never`, which no other type could add fields to. */
type Named<Fields> = { [Name in keyof Fields as string extends Name ? never : Name]: Fields[Name] };

type RequestFields<Query extends z.ZodObject, Body extends z.ZodObject> = Omit<
  Named<z.infer<Query>>,
  keyof z.infer<Body>
> &
  Omit<z.infer<Body>, "id"> &
  PathFields;

/** A contract of which no more is known than what all have. */
export type AnyContract = Omit<Contract, "bodyAccess"> & { readonly bodyAccess: (request: never) => readonly Access[] };

/** The parsed request of a contract: the id of the path, and the fields of query and body in one object. */
export type RequestOf<C> = C extends { readonly bodyAccess: (request: infer Request) => readonly Access[] }
  ? Request
  : never;

/** The answer of a contract; `undefined` for an answer without a body. */
export type ResponseOf<C extends AnyContract> = z.infer<C["response"]>;

/** Statuses that any operation may answer. */
export const commonErrors = [400, 401, 403, 413, 500, 503] as const satisfies readonly ErrorStatus[];

/** The response schema of an operation that answers with its status alone. */
export const noContent = z.undefined();

/** The response schema of an operation that answers with an Arrow IPC file, in pieces. */
export const arrowFile = z.custom<ReadableStream<Uint8Array>>((value) => value instanceof ReadableStream);
/** As `arrowFile`, in Arrow's format for streams. */
export const arrowStream = z.custom<ReadableStream<Uint8Array>>((value) => value instanceof ReadableStream);

/** The media type of an answer that is Arrow; undefined for others. */
export function arrowTypeOf(response: z.ZodType): string | undefined {
  if (response === arrowFile) return "application/vnd.apache.arrow.file";
  return response === arrowStream ? "application/vnd.apache.arrow.stream" : undefined;
}

const noFields = z.object({});
const commonFields = z.object(commonRequest);

/** Whether an operation changes nothing. */
export function onlyReads({ methods, access }: AnyContract): boolean {
  const anyPath: PathFields = { id: ["namespace", "name"], indexName: "index", delimiter: defaultDelimiter };
  return !methods.includes("POST") || access(anyPath).every(({ role }) => role === "reader");
}

/** Whether a client may retry an operation whose response was lost: it reads only, or its contract says so. */
export function isIdempotent(contract: AnyContract): boolean {
  return contract.idempotent || onlyReads(contract);
}

/** Fills in what most contracts share: a POST with a JSON body, answered with 200. */
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
    // What is absent has the type that its type parameter defaults to.
    bareField: contract.bareField as BareField,
    query: contract.query ?? (noFields as unknown as Query),
    body: contract.body ?? (commonFields as unknown as Body),
    response: contract.response ?? (noContent as unknown as Response),
  };
}

/** The access rule of most operations: a role on the object that the path names. */
export function onPath(role: Role, orRole?: Access["orRole"]) {
  return ({ id }: { readonly id: Identifier }): readonly Access[] => [{ role, object: id, ...(orRole && { orRole }) }];
}

/** The access rule of a batch, as far as its path tells. */
export function anywhere(role: Role) {
  return (): readonly Access[] => [{ role, object: "anywhere" }];
}
