import * as pulumi from "@pulumi/pulumi";
import { parseStackConfig } from "../../infra/config.ts";
import { deploy } from "../../infra/deploy.ts";
import { cloudAnswers, cloudOutputs } from "./clouds.ts";

/** A resource as the program asked Pulumi's engine for it. */
export interface Asked {
  readonly type: string;
  readonly name: string;
  readonly urn: string;
  readonly parent: string;
  /** Secrets are what they contain; `secrets` tells where they were. */
  // biome-ignore lint/suspicious/noExplicitAny: the inputs of hundreds of resource types, which tests look into.
  readonly inputs: any;
  /** Paths of the inputs that are marked as secrets. */
  readonly secrets: readonly string[];
  readonly custom: boolean;
  readonly protect: boolean;
  readonly retainOnDelete: boolean;
  readonly ignoreChanges: readonly string[];
  /** URNs. */
  readonly dependencies: readonly string[];
  readonly provider: string;
}

export interface Deployed {
  readonly resources: readonly Asked[];
  /** Secrets are what they contain; `secretOutputs` names them. */
  readonly outputs: Readonly<Record<string, unknown>>;
  readonly secretOutputs: readonly string[];
  /** Functions of clouds that were called. */
  readonly calls: readonly string[];
  /** The only resource of a type, or the only one of that type whose name ends so. */
  one(type: string, name?: string): Asked;
  all(type: string): readonly Asked[];
}

/** Settings as they stand in a stack's file: structures are JSON there. */
export type Settings = Readonly<Record<string, unknown>>;

const required: Readonly<Record<string, Settings>> = {
  existing: { bucket: "s3://tables/lance", catalog: { image: "registry.example.com/catalog:1" } },
  "existing-gke": { "gcp:project": "our-project", "gcp:region": "europe-west4" },
  "existing-eks": { "aws:region": "eu-central-1" },
  gke: { "gcp:project": "our-project", "gcp:region": "europe-west4" },
  eks: { "aws:region": "eu-central-1", clientPrincipals: ["arn:aws:iam::123456789012:role/ml-engineers"] },
};

/** The settings by their full names, with what a variant cannot do without. */
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

/** Pulumi's runtime is one for the whole process: the next stack begins when the last is done. */
let last: Promise<unknown> = Promise.resolve();

/**
 * Runs the program, with clouds that answer plausibly, and tells what it asked for. Pulumi keeps the stack trace of each of
 * its thousands of promises, which takes more than half of the time: errors of the program have none here.
 */
export function deployed(variant: string, settings?: Settings): Promise<Deployed> {
  const next = last.then(async () => {
    const { stackTraceLimit } = Error;
    Error.stackTraceLimit = 0;
    try {
      return await run(variant, settings);
    } finally {
      Error.stackTraceLimit = stackTraceLimit;
    }
  });
  last = next.catch(() => {});
  return next;
}

async function run(variant: string, settings?: Settings): Promise<Deployed> {
  const resources: Asked[] = [];
  const calls: string[] = [];
  const all = settingsOf(variant, settings);
  await pulumi.runtime.setMocks(
    {
      newResource: ({ type, name, inputs }) => ({
        id: `${name}-id`,
        state: cloudOutputs(type, name, inputs, all["aws:region"]),
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
  const outputs = await deploy(parseStackConfig(all));
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

/** Writes down each request to make a resource, with the options that mocks do not tell. */
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
    ignoreChanges: list("getIgnorechangesList"),
    dependencies: list("getDependenciesList"),
    provider: text("getProvider"),
  };
}

const signature = "4dabf18193072939515e22adb298388d";
const secretSignature = "1b47061264138c4ac30d75fd1eb44270";

/** What Pulumi's wire format stands for, and where it has secrets. */
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
