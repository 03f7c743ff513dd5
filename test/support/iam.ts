import type { Deployed } from "./stack.ts";

/**
 * Decides as AWS does whether a call is allowed: an explicit Deny wins, then an Allow, and without either it is
 * denied. It knows actions and resources with wildcards, their opposites, principals, and the conditions that policies
 * here use; of any other condition it says so. The rules: "Policy evaluation logic" of the IAM User Guide.
 */
export interface Call {
  readonly action: string;
  /** An ARN; empty for what has none. */
  readonly resource?: string;
  /** Keys of conditions, as AWS fills them in for the call. */
  readonly context?: Readonly<Record<string, string>>;
  /** The caller, for policies of a resource or of trust: an ARN, or a provider of identities. */
  readonly principal?: string;
}

interface Statement {
  readonly Effect: "Allow" | "Deny";
  readonly Action?: string | readonly string[];
  readonly NotAction?: string | readonly string[];
  readonly Resource?: string | readonly string[];
  readonly NotResource?: string | readonly string[];
  readonly Principal?: string | Readonly<Record<string, string | readonly string[]>>;
  readonly Condition?: Readonly<Record<string, Readonly<Record<string, string | readonly string[]>>>>;
}

/** @param policies Documents as JSON. */
export function isAllowed(policies: readonly string[], call: Call): boolean {
  const statements = policies.flatMap((policy): Statement[] => JSON.parse(policy).Statement);
  const effects = new Set(statements.filter((each) => applies(each, call)).map(({ Effect }) => Effect));
  return effects.has("Allow") && !effects.has("Deny");
}

/** Whether a role of a stack may make a call by its own policies, and by that of the bucket that it is made on. */
export function mayCall(stack: Deployed, role: string, call: Call): boolean {
  const { name } = stack.one("aws:iam/role:Role", role);
  const own = stack
    .all("aws:iam/rolePolicy:RolePolicy")
    .filter(({ inputs }) => [`${name}-id`, name].includes(inputs.role))
    .map(({ inputs }): string => inputs.policy);
  const denials = stack.all("aws:s3/bucketPolicy:BucketPolicy").map(({ inputs }): string => inputs.policy);
  const isDeniedByBucket = denials.some((policy) => isDenied(policy, { principal: name, ...call }));
  return isAllowed(own, call) && !isDeniedByBucket;
}

/** Calls of the actions on a resource. */
export function callsOn(
  resource: string,
  context: Readonly<Record<string, string>>,
  ...actions: readonly string[]
): readonly Call[] {
  return actions.map((action) => ({ action, resource, context }));
}

/** The keys that S3 sets for a call by TLS. */
export const overTls = { "aws:SecureTransport": "true" };

const objectActions = ["s3:GetObject", "s3:PutObject", "s3:DeleteObject"];

/** What Lance and the catalog call of objects: to head an object S3 asks for the right to get it. */
export function callsOnObject(arn: string): readonly Call[] {
  return callsOn(arn, overTls, ...objectActions);
}

/** A pod of a service account that becomes a role by the provider of its cluster. */
export function asPod(issuer: string, namespace: string, account: string, audience = "sts.amazonaws.com"): Call {
  return {
    action: "sts:AssumeRoleWithWebIdentity",
    principal: `arn:aws:iam::123456789012:oidc-provider/${issuer}`,
    context: { [`${issuer}:aud`]: audience, [`${issuer}:sub`]: `system:serviceaccount:${namespace}:${account}` },
  };
}

/** Whether the caller may assume a role. */
export function mayBecome(stack: Deployed, role: string, call: Call): boolean {
  return isAllowed([stack.one("aws:iam/role:Role", role).inputs.assumeRolePolicy], call);
}

function isDenied(policy: string, call: Call): boolean {
  const statements: readonly Statement[] = JSON.parse(policy).Statement;
  return statements.some((each) => each.Effect === "Deny" && applies(each, call));
}

function applies(statement: Statement, { action, resource = "", context = {}, principal }: Call): boolean {
  const { Action, NotAction, Resource, NotResource, Principal, Condition = {} } = statement;
  return (
    isNamed(Action, NotAction, action.toLowerCase(), (pattern) => pattern.toLowerCase()) &&
    isNamed(Resource, NotResource, resource, (pattern) => pattern) &&
    isPrincipal(Principal, principal) &&
    Object.entries(Condition).every(([operator, keys]) =>
      Object.entries(keys).every(([key, values]) => holds(operator, context[key], list(values))),
    )
  );
}

function isNamed(
  names: string | readonly string[] | undefined,
  others: string | readonly string[] | undefined,
  value: string,
  as: (pattern: string) => string,
): boolean {
  if (names !== undefined) return list(names).some((pattern) => matches(as(pattern), value));
  if (others !== undefined) return !list(others).some((pattern) => matches(as(pattern), value));
  return true;
}

function isPrincipal(principals: Statement["Principal"], principal: string | undefined): boolean {
  if (principals === undefined || principals === "*") return true;
  if (principal === undefined || typeof principals === "string") return false;
  const account = principal.split(":")[4];
  return Object.values(principals)
    .flatMap(list)
    .some((each) => each === principal || each === "*" || each.endsWith(`::${account}:root`));
}

/** A condition on a key that the call does not have does not hold. */
function holds(operator: string, actual: string | undefined, expected: readonly string[]): boolean {
  if (actual === undefined) return false;
  if (operator === "StringEquals") return expected.includes(actual);
  if (operator === "Bool") return expected.includes(actual);
  if (operator === "StringLike") return expected.some((pattern) => matches(pattern, actual));
  throw new Error(`no condition ${operator} is known here`);
}

function matches(pattern: string, value: string): boolean {
  const source = pattern
    .replace(/[.+^${}()|[\]\\]/g, "\\$&")
    .replaceAll("*", ".*")
    .replaceAll("?", ".");
  return new RegExp(`^${source}$`, "s").test(value);
}

function list(value: string | readonly string[]): readonly string[] {
  return typeof value === "string" ? [value] : value;
}
