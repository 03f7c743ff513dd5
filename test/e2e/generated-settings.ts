import fc from "fast-check";
import { parseStackConfig, StackConfigError } from "../../infra/config.ts";
import { type Settings, settingsOf, testDate } from "../support/stack.ts";

/** A setting by its path, such as `catalog.ingress.host`, and a value that the stack accepts or refuses. */
export interface GeneratedSetting {
  readonly path: string;
  readonly value: unknown;
}

const long = (length: number) => "a".repeat(length);
const name = fc.oneof(
  fc.stringMatching(/^[a-z0-9.-]{0,70}$/),
  fc.constantFrom(
    "a",
    "1",
    "a.b",
    "-a",
    "a-",
    "a..b",
    "A",
    "a_b",
    "a b",
    "é",
    "default",
    "kube-system",
    "true",
    "null",
  ),
  fc.constantFrom(long(63), long(64), long(253), long(254)),
);
const quantity = fc.oneof(
  fc.stringMatching(/^\d{1,20}(\.\d{1,4})?(m|k|M|G|Ki|Mi|Gi|Ei|e3|E)?$/),
  fc.constantFrom("0", "0m", "-1", "+1", ".5", "5.", "1 Gi", "1Gib", "1e99", "1e-9", "0.0001", "1GiB", "", "Infinity"),
  fc.constantFrom<unknown>(0, 1, 0.5, 1e21, -1, true),
);
const host = fc.oneof(
  fc.stringMatching(/^([a-z0-9-]{1,9}\.){0,5}[a-z0-9-]{1,9}\.?$/),
  fc.constantFrom("*.example.com", "localhost", "10.0.0.1", "a_b.example.com", "A.example.com", `${long(64)}.com`),
);
const cidr = fc.oneof(
  fc.ipV4Extended(),
  fc.constantFrom("0.0.0.0/0", "10.0.0.0/8", "10.0.0.1/8", "10.0.0.0/33", "::/0", "010.0.0.0/8", "10.0.0.0/08"),
);
const whole = fc.oneof(
  fc.integer({ min: -1, max: 70_000 }),
  fc.constantFrom<unknown>(0, 1.5, 1e10, 2 ** 31, "5", null),
);
const text = fc.oneof(
  fc.string({ unit: "grapheme" }),
  fc.constantFrom("", " ", "\n", "\u0000", "{{", "$(HOME)", "'\""),
);
const key = fc.oneof(
  name,
  text,
  fc.tuple(host, name).map((parts) => parts.join("/")),
);
const annotations = fc.dictionary(key, text, { maxKeys: 2 });
const labels = fc.dictionary(key, fc.oneof(name, text), { maxKeys: 2 });
const oidc = { issuer: "https://login.example.com", audience: "tiltyard" };
const ingress = { host: "catalog.example.com", className: "nginx" };
const gateway = { host: "catalog.example.com", name: "public", namespace: "gateways" };

/** Generates settings whose values get into objects of Kubernetes. Half of their values are at the edge of a grammar. */
export const generatedSetting: fc.Arbitrary<GeneratedSetting> = fc.oneof(
  ...(
    [
      ["namespace", name],
      ["serviceAccount", name],
      ["labelDomain", host],
      ["quota", fc.record({ cpu: quantity, memory: quantity, gpus: whole })],
      ["teams", fc.array(fc.record({ name, namespace: name }, { requiredKeys: ["name"] }), { maxLength: 2 })],
      ["ray.allowedNamespaces", fc.array(name, { maxLength: 2 })],
      ["runner.queue", name],
      ["runner.maxJobs", whole],
      ["monitoring", fc.record({ collector: fc.constant("prometheus-operator"), namespace: name, labels })],
      ["monitoring.dashboards", fc.record({ label: key, value: fc.oneof(name, text) })],
      ["catalog.namespace", name],
      ["catalog.volumeSize", quantity],
      ["catalog.resources", fc.record({ cpu: quantity, memory: quantity }, { requiredKeys: [] })],
      ["catalog.rateLimit", whole],
      ["catalog.allowedNamespaces", fc.array(name, { maxLength: 2 })],
      ["catalog.allowedCidrs", fc.array(cidr, { maxLength: 2 })],
      ["catalog.egressPorts", fc.array(whole, { maxLength: 2 })],
      ["catalog.environment.TILTYARD_AUDIT_RETENTION", text],
      ["catalog.environmentSecret", name],
      ["catalog.secretsKeyIds", fc.array(fc.oneof(name, text), { maxLength: 2 })],
      ["catalog.secretsKeySecret", name],
      [
        "catalog.oidc",
        fc.record({ issuer: fc.webUrl(), audience: text, scope: text }, { requiredKeys: ["issuer", "audience"] }),
      ],
      ["catalog", fc.record({ host, className: name, tlsSecret: name }).map((given) => ({ oidc, ingress: given }))],
      ["catalog", annotations.map((given) => ({ oidc, ingress: { ...ingress, annotations: given } }))],
      ["catalog", fc.record({ host, name, namespace: name }).map((given) => ({ oidc, gateway: given }))],
      ["catalog", name.map((sectionName) => ({ oidc, gateway: { ...gateway, sectionName } }))],
    ] as const
  ).map(([path, values]: readonly [string, fc.Arbitrary<unknown>]) => values.map((value) => ({ path, value }))),
);

/** Returns the settings of a variant with those generated ones that the stack accepts in addition to the earlier ones. */
export function acceptedSettings(variant: string, base: Settings, generated: readonly GeneratedSetting[]): Settings {
  let accepted = base;
  for (const { path, value } of generated) {
    const [first = "", ...rest] = path.split(".");
    const candidate = { ...accepted, [first]: withValue(accepted[first], rest, value) };
    try {
      parseStackConfig(settingsOf(variant, candidate), testDate);
      accepted = candidate;
    } catch (error) {
      if (!(error instanceof StackConfigError)) throw new Error(`${path} ${JSON.stringify(value)}`, { cause: error });
    }
  }
  return accepted;
}

function withValue(present: unknown, [name, ...rest]: readonly string[], value: unknown): unknown {
  const object = typeof present === "object" && present !== null ? present : {};
  if (name !== undefined) return { ...object, [name]: withValue(Object(object)[name], rest, value) };
  return typeof value === "object" && value !== null && !Array.isArray(value) ? { ...object, ...value } : value;
}
