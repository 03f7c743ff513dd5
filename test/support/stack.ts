import * as pulumi from "@pulumi/pulumi";
import { parseStackConfig } from "../../infra/config.ts";
import { deploy } from "../../infra/deploy.ts";
import { cloudAnswers, cloudOutputs } from "./clouds.ts";
import { setMocks } from "./pulumi-mocks.ts";

/** A resource that the program registered with Pulumi's engine. */
export interface Asked {
  readonly type: string;
  readonly name: string;
  readonly urn: string;
  readonly parent: string;
  /** The inputs, with secrets unwrapped; `secrets` has their paths. */
  // biome-ignore lint/suspicious/noExplicitAny: the inputs of hundreds of resource types, which tests look into.
  readonly inputs: any;
  /** Paths of the inputs that are marked as secrets. */
  readonly secrets: readonly string[];
  readonly custom: boolean;
  readonly protect: boolean;
  readonly retainOnDelete: boolean;
  readonly deleteBeforeReplace: boolean;
  readonly ignoreChanges: readonly string[];
  /** The id of an adopted object; empty for a created one. */
  readonly importId: string;
  /** The names of the hooks that run before it is created or updated, and after its creation. */
  readonly hooks: readonly string[];
  readonly hooksOfUpdate: readonly string[];
  readonly hooksAfter: readonly string[];
  /** The URNs of the resources that it depends on. */
  readonly dependencies: readonly string[];
  readonly provider: string;
}

/** Stand-ins for the resource definitions of KubeRay's chart. */
export const rayDefinitions = ["RayCluster", "RayJob"].map((kind) => {
  const plural = `${kind.toLowerCase()}s`;
  const schema = { openAPIV3Schema: { type: "object", "x-kubernetes-preserve-unknown-fields": true } };
  return {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: `${plural}.ray.io` },
    spec: {
      ...{ group: "ray.io", scope: "Namespaced", names: { kind, plural, singular: kind.toLowerCase() } },
      versions: [{ name: "v1", served: true, storage: true, schema }],
    },
  };
});

export interface Deployed {
  readonly resources: readonly Asked[];
  /** The outputs, with secrets unwrapped; `secretOutputs` names them. */
  readonly outputs: Readonly<Record<string, unknown>>;
  readonly secretOutputs: readonly string[];
  /** The called functions of clouds. */
  readonly calls: readonly string[];
  /** Returns the only resource of a type, or the only one of that type with this name suffix. */
  one(type: string, name?: string): Asked;
  all(type: string): readonly Asked[];
}

/** Settings in the form of a stack's file, with structures as JSON. */
export type Settings = Readonly<Record<string, unknown>>;

const required: Readonly<Record<string, Settings>> = {
  existing: { bucket: "s3://tables/lance", catalog: { image: "registry.example.com/catalog:1" } },
  "existing-gke": { "gcp:project": "our-project", "gcp:region": "europe-west4" },
  "existing-eks": { "aws:region": "eu-central-1" },
  gke: { "gcp:project": "our-project", "gcp:region": "europe-west4" },
  eks: { "aws:region": "eu-central-1", clientPrincipals: ["arn:aws:iam::123456789012:role/ml-engineers"] },
};

/** Returns the settings by their full names, with the required ones of the variant. */
export function settingsOf(variant: string, settings: Settings = {}): Record<string, string> {
  const all = { variant, ...required[variant], ...settings };
  return Object.fromEntries(
    Object.entries(all)
      .filter(([, value]) => value !== undefined)
      .map(([name, value]) => [
        name.includes(":") ? name : `tiltyard:${name}`,
        typeof value === "string" ? value : JSON.stringify(value),
      ]),
  );
}

/** The date that the tests use as today, so that their versions are always supported. */
export const testDate = new Date("2026-06-15");

/** Pulumi's runtime is global, so stacks run one after the other. */
let last: Promise<unknown> = Promise.resolve();

/**
 * Runs the program with emulated clouds and returns the resources that it registers. Pulumi records the stack traces of its thousands
 * of promises and resources, which take more than half of the time, so errors of the program have no stack trace here.
 */
export function deployed(variant: string, settings?: Settings): Promise<Deployed> {
  const next = last.then(async () => {
    const { stackTraceLimit, prepareStackTrace } = Error;
    Error.stackTraceLimit = 0;
    // Pulumi ignores the limit for resources.
    Error.prepareStackTrace = String;
    try {
      return await run(variant, settings);
    } finally {
      Object.assign(Error, { stackTraceLimit, prepareStackTrace });
    }
  });
  last = next.catch(() => {});
  return next;
}

async function run(variant: string, settings?: Settings): Promise<Deployed> {
  const resources: Asked[] = [];
  const calls: string[] = [];
  const all = settingsOf(variant, settings);
  await setMocks(
    {
      newResource: ({ type, name, inputs, id }) => ({
        id: id || `${name}-id`,
        // An object with an id exists, and is only read.
        state: id ? { metadata: { uid: `uid-of-${id}` } } : cloudOutputs(type, name, inputs, all["aws:region"]),
      }),
      call: ({ token, inputs }) => {
        calls.push(token);
        return cloudAnswers(token, inputs, all["aws:region"]);
      },
    },
    "tiltyard",
    "test",
  );
  listen(resources);
  const outputs = await deploy(parseStackConfig(all, testDate), async () => rayDefinitions);
  const known = await outputsOf(outputs);
  await pulumi.runtime.disconnect();

  const ofType = (type: string) => resources.filter((each) => each.type === type);
  return {
    resources,
    calls,
    all: ofType,
    outputs: Object.fromEntries(known.map(([name, value]) => [name, value])),
    secretOutputs: known.filter(([, , isSecret]) => isSecret).map(([name]) => name),
    one: (type, name = "") => {
      const found = ofType(type).filter((each) => each.name.endsWith(name));
      const [only] = found;
      if (only === undefined || found.length > 1)
        throw new Error(
          `${found.length} resources of type ${type} named ...${name}: ${found.map((each) => each.name)}`,
        );
      return only;
    },
  };
}

function outputsOf(outputs: object): Promise<[string, unknown, boolean][]> {
  return Promise.all(
    Object.entries(outputs).map(async ([name, value]): Promise<[string, unknown, boolean]> => {
      const output = pulumi.output(value);
      const known = await new Promise((resolve) => output.apply(resolve));
      return [name, known, await pulumi.isSecret(output)];
    }),
  );
}

type Request = Record<`get${string}`, () => unknown>;

/** Records each registration of a resource, with the options that mocks do not receive. */
function listen(resources: Asked[]): void {
  const monitor = pulumi.runtime.getMonitor() as unknown as {
    registerResource(request: Request, callback: (error: unknown, response: Request) => void): void;
  };
  const register = monitor.registerResource.bind(monitor);
  monitor.registerResource = (request, callback) =>
    register(request, (error, response) => {
      if (error === null) resources.push(askedOf(request, String(response.getUrn?.())));
      callback(error, response);
    });
}

function askedOf(request: Request, urn: string): Asked {
  const text = (name: `get${string}`) => String(request[name]?.() ?? "");
  const list = (name: `get${string}`) => (request[name]?.() ?? []) as string[];
  const secrets: string[] = [];
  const struct = request.getObject?.() as { toJavaScript(): unknown } | undefined;
  return {
    type: text("getType"),
    name: text("getName"),
    urn,
    parent: text("getParent"),
    inputs: readValue(struct?.toJavaScript() ?? {}, "", secrets),
    secrets,
    custom: request.getCustom?.() === true,
    protect: request.getProtect?.() === true,
    retainOnDelete: request.getRetainondelete?.() === true,
    deleteBeforeReplace: request.getDeletebeforereplace?.() === true,
    importId: text("getImportid"),
    ignoreChanges: list("getIgnorechangesList"),
    hooks: hooksOf(request)?.getBeforeCreateList() ?? [],
    hooksOfUpdate: hooksOf(request)?.getBeforeUpdateList() ?? [],
    hooksAfter: hooksOf(request)?.getAfterCreateList() ?? [],
    dependencies: list("getDependenciesList"),
    provider: text("getProvider"),
  };
}

function hooksOf(request: Request) {
  type Lists = Readonly<Record<"getBeforeCreateList" | "getBeforeUpdateList" | "getAfterCreateList", () => string[]>>;
  return request.getHooks?.() as Lists | undefined;
}

const signature = "4dabf18193072939515e22adb298388d";
const secretSignature = "1b47061264138c4ac30d75fd1eb44270";

/** Decodes Pulumi's wire format and finds its secrets. */
function readValue(value: unknown, path: string, secrets: string[]): unknown {
  if (Array.isArray(value)) return value.map((each, index) => readValue(each, `${path}.${index}`, secrets));
  if (value === null || typeof value !== "object") return value;
  if (signature in value && value[signature] === secretSignature && "value" in value) {
    secrets.push(path.slice(1));
    return readValue(value.value, path, secrets);
  }
  return Object.fromEntries(
    Object.entries(value).map(([name, each]) => [name, readValue(each, `${path}.${name}`, secrets)]),
  );
}
