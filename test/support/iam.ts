import type { Deployed } from "./stack.ts";

/**
 * Decides like AWS whether policies allow a call: an explicit Deny wins, then an Allow; the default is a denial. It supports actions and
 * resources with wildcards, NotAction and NotResource, principals, and the conditions of this project's policies, and throws for any other
 * condition. Source: "Policy evaluation logic" of the IAM User Guide.
 */
export interface Call {
  readonly action: string;
  /** An ARN; empty for a call without a resource. */
  readonly resource?: string;
  /** The condition keys that AWS sets for the call. */
  readonly context?: Readonly<Record<string, string>>;
  /** The caller for resource and trust policies: an ARN or an identity provider. */
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

/** Returns whether a role of a stack may send a call, by its own policies and that of the bucket. */
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

/** Returns a call of each action on a resource. */
export function callsOn(
  resource: string,
  context: Readonly<Record<string, string>>,
  ...actions: readonly string[]
): readonly Call[] {
  return actions.map((action) => ({ action, resource, context }));
}

/** The condition keys that S3 sets for a call over TLS. */
export const overTls = { "aws:SecureTransport": "true" };

const objectActions = ["s3:GetObject", "s3:PutObject", "s3:DeleteObject"];

/** The calls of Lance and the catalog on objects. HeadObject requires the right s3:GetObject. */
export function callsOnObject(arn: string): readonly Call[] {
  return callsOn(arn, overTls, ...objectActions);
}

/** Returns the call with which a pod of a service account assumes a role by web identity. */
export function asPod(issuer: string, namespace: string, account: string, audience = "sts.amazonaws.com"): Call {
  return {
    action: "sts:AssumeRoleWithWebIdentity",
    principal: `arn:aws:iam::123456789012:oidc-provider/${issuer}`,
    context: { [`${issuer}:aud`]: audience, [`${issuer}:sub`]: `system:serviceaccount:${namespace}:${account}` },
  };
}

/** Returns whether the caller may assume a role. */
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

/** A condition on a missing key is false. */
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
