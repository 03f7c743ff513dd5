/**
 * A plugin of Pulumi's engine: a process that serves the protocol of providers. Pulumi's own library does not pass
 * settings such as a kubeconfig to a provider.
 */
import { createRequire, flushCompileCache } from "node:module";
import * as grpc from "@grpc/grpc-js";
import { recordProcess } from "./record.ts";

// The messages must be those of Pulumi's own copy of the protobuf library.
const load = createRequire(createRequire(import.meta.url).resolve("@pulumi/pulumi"));
const messages: typeof import("@pulumi/pulumi/proto/provider_pb.js") = load("@pulumi/pulumi/proto/provider_pb.js");
const { ResourceProviderService }: typeof import("@pulumi/pulumi/proto/provider_grpc_pb.js") = load(
  "@pulumi/pulumi/proto/provider_grpc_pb.js",
);
const { PluginInfo }: typeof import("@pulumi/pulumi/proto/plugin_pb.js") = load("@pulumi/pulumi/proto/plugin_pb.js");
const { Struct } = load("google-protobuf/google/protobuf/struct_pb.js");
const { Empty } = load("google-protobuf/google/protobuf/empty_pb.js");

// biome-ignore lint/suspicious/noExplicitAny: the inputs and outputs of all types of resources.
export type Values = Readonly<Record<string, any>>;

export interface Resource {
  readonly urn: string;
  readonly type: string;
  readonly name: string;
}
export interface State {
  readonly id: string;
  readonly outputs: Values;
}
export interface Difference {
  readonly changes: readonly string[];
  readonly replaces: readonly string[];
  readonly deleteBeforeReplace: boolean;
}

export interface Provider {
  /**
   * Lets the provider see which values are secrets and mark its outputs. Otherwise it sees plain values, and the engine
   * marks outputs with the names of secret inputs.
   */
  readonly seesSecrets?: boolean;
  configure?(settings: Values): Promise<void>;
  /** Returns the settings whose change replaces the provider with all its resources. */
  replacesOfSettings?(old: Values, now: Values): readonly string[];
  /** Completes the inputs. `old` is undefined for a new resource. */
  check?(resource: Resource, old: Values | undefined, inputs: Values): Promise<Values>;
  diff(resource: Resource, id: string, old: { inputs: Values; outputs: Values }, inputs: Values): Promise<Difference>;
  create(resource: Resource, inputs: Values): Promise<State>;
  update(resource: Resource, id: string, old: Values, inputs: Values): Promise<Values>;
  /** Reads a resource. @returns undefined if it no longer exists. */
  read(
    resource: Resource,
    id: string,
    old: { inputs: Values; outputs: Values },
  ): Promise<{ inputs: Values; outputs: Values } | undefined>;
  delete(resource: Resource, id: string, outputs: Values): Promise<void>;
  /** Calls a function without resources. */
  invoke?(token: string, inputs: Values): Promise<Values>;
}

/** The engine's placeholder of a value that is not known yet. */
const unknowns = /^04da6b54-80e4-46f7-96ec-b56ff0331ba9$/;

export function hasUnknowns(value: unknown): boolean {
  if (typeof value === "string") return unknowns.test(value);
  return typeof value === "object" && value !== null && Object.values(value).some(hasUnknowns);
}

type Struct = { toJavaScript(): Values };

/** The engine's mark of a secret. */
export const secretMark = { "4dabf18193072939515e22adb298388d": "1b47061264138c4ac30d75fd1eb44270" } as const;

function withoutMarks(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutMarks);
  if (typeof value !== "object" || value === null) return value;
  const isMarked = Object.keys(secretMark).some((key) => key in value);
  if (isMarked && "value" in value) return withoutMarks(value.value);
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, withoutMarks(each)]));
}

/**
 * Serves the provider until the engine stops the process.
 *
 * @param version The reported version. The engine warns of one that the program's library does not expect.
 */
export function serve(provider: Provider, version: string): void {
  endWithEngine();
  const service: grpc.UntypedServiceImplementation = {
    getPluginInfo: unary(async () => new PluginInfo().setVersion(version)),
    cancel: unary(async () => new Empty()),
    checkConfig: unary(async (request) => new messages.CheckResponse().setInputs(request.getNews())),
    diffConfig: unary(async (request) => {
      const [old, now] = [request.getOldInputs(), request.getNews()].map(
        (each) => withoutMarks(valuesOf(each)) as Values,
      );
      const replaces = provider.replacesOfSettings?.(old ?? {}, now ?? {}) ?? [];
      return differenceOf(changedKeys(old ?? {}, now ?? {})).setReplacesList([...replaces]);
    }),
    configure: unary(async (request) => {
      // Settings arrive with marked secrets before the engine learns that this is unnecessary.
      await provider.configure?.(withoutMarks(valuesOf(request.getArgs())) as Values);
      return new messages.ConfigureResponse().setAcceptsecrets(provider.seesSecrets ?? false);
    }),
    check: unary(async (request) => {
      if (provider.check === undefined) return new messages.CheckResponse().setInputs(request.getNews());
      const old = request.getOlds();
      const inputs = await provider.check(
        resourceOf(request),
        old && nonEmpty(valuesOf(old)),
        valuesOf(request.getNews()),
      );
      return new messages.CheckResponse().setInputs(Struct.fromJavaScript(inputs));
    }),
    diff: unary(async (request) => {
      const old = { inputs: valuesOf(request.getOldInputs()), outputs: valuesOf(request.getOlds()) };
      const found = await provider.diff(resourceOf(request), request.getId(), old, valuesOf(request.getNews()));
      return differenceOf(found.changes)
        .setReplacesList([...found.replaces])
        .setDeletebeforereplace(found.deleteBeforeReplace);
    }),
    create: unary(async (request) => {
      const { id, outputs } = await provider.create(resourceOf(request), valuesOf(request.getProperties()));
      return new messages.CreateResponse().setId(id).setProperties(Struct.fromJavaScript(outputs));
    }),
    update: unary(async (request) => {
      const [old, inputs] = [valuesOf(request.getOlds()), valuesOf(request.getNews())];
      const outputs = await provider.update(resourceOf(request), request.getId(), old, inputs);
      return new messages.UpdateResponse().setProperties(Struct.fromJavaScript(outputs));
    }),
    read: unary(async (request) => {
      const old = { inputs: valuesOf(request.getInputs()), outputs: valuesOf(request.getProperties()) };
      const found = await provider.read(resourceOf(request), request.getId(), old);
      const response = new messages.ReadResponse();
      if (found === undefined) return response;
      return response
        .setId(request.getId())
        .setProperties(Struct.fromJavaScript(found.outputs))
        .setInputs(Struct.fromJavaScript(found.inputs));
    }),
    delete: unary(async (request) => {
      await provider.delete(resourceOf(request), request.getId(), valuesOf(request.getProperties()));
      return new Empty();
    }),
    invoke: unary(async (request) => {
      const answer = await provider.invoke?.(request.getTok(), valuesOf(request.getArgs()));
      if (answer === undefined) throw new Error(`unknown function ${request.getTok()}`);
      return new messages.InvokeResponse().setReturn(Struct.fromJavaScript(answer));
    }),
  };
  const server = new grpc.Server({ "grpc.max_receive_message_length": -1, "grpc.max_send_message_length": -1 });
  server.addService(ResourceProviderService, service);
  server.bindAsync("127.0.0.1:0", grpc.ServerCredentials.createInsecure(), (error, port) => {
    if (error) throw error;
    // The engine reads the port from standard output.
    process.stdout.write(`${port}\n`);
    // The engine kills this process, which then has no time to save its compiled code for the next one.
    flushCompileCache();
  });
}

/** Ends this process with the engine, which holds the other end of standard input. A killed engine stops no plugin. */
export function endWithEngine(): void {
  recordProcess();
  process.stdin.once("end", () => process.exit()).resume();
}

/** Returns the names of the differing top-level values. */
export function changedKeys(old: Values, now: Values): string[] {
  return [...new Set([...Object.keys(old), ...Object.keys(now)])].filter((key) => !isSame(old[key], now[key]));
}

/** Reports whether two JSON values are equal, whatever the order of their keys. */
export function isSame(one: unknown, other: unknown): boolean {
  if (typeof one !== "object" || typeof other !== "object" || one === null || other === null) return one === other;
  if (Array.isArray(one) !== Array.isArray(other)) return false;
  return changedKeys(one, other).length === 0;
}

function differenceOf(changes: readonly string[]) {
  const { DIFF_NONE, DIFF_SOME } = messages.DiffResponse.DiffChanges;
  return new messages.DiffResponse()
    .setChanges(changes.length === 0 ? DIFF_NONE : DIFF_SOME)
    .setDiffsList([...changes]);
}

function resourceOf(request: { getUrn(): string; getType(): string; getName(): string }): Resource {
  return { urn: request.getUrn(), type: request.getType(), name: request.getName() };
}

function valuesOf(struct: Struct | undefined): Values {
  return struct?.toJavaScript() ?? {};
}

function nonEmpty(values: Values): Values | undefined {
  return Object.keys(values).length === 0 ? undefined : values;
}

// biome-ignore lint/suspicious/noExplicitAny: each method has a message of its own.
function unary(answer: (request: any) => Promise<unknown>): grpc.handleUnaryCall<any, unknown> {
  return (call, callback) => {
    answer(call.request).then(
      (response) => callback(null, response),
      (error) =>
        callback({ code: grpc.status.UNKNOWN, details: error instanceof Error ? error.message : String(error) }),
    );
  };
}

/** Returns the version of Pulumi's library for a provider. */
export function libraryVersion(name: string): string {
  return createRequire(import.meta.url)(`@pulumi/${name}/package.json`).version;
}
