import { mkdirSync, writeFileSync } from "node:fs";
import pMap from "p-map";
import { manifestName } from "../../service/lance/version-names.ts";
import { parseLocation } from "../../service/storage/location.ts";
import { type LoadRequest, send } from "./load.ts";
import type { Server } from "./servers.ts";
import type { Requests } from "./wrk.ts";

/** A kind of request. Every server receives it for separate tables. */
export interface Scenario {
  readonly name: string;
  /** Prepares an empty server for the requests. */
  readonly prepare: (server: Server, size: LoadSize) => Promise<PreparedLoad>;
  /** Enables the measurement of the disk in addition. */
  readonly isOfDisk?: boolean;
}

export interface LoadSize {
  /** The maximum number of simultaneous connections. */
  readonly connections: number;
  /** The number of tables of the namespace. */
  readonly tables: number;
}

export interface PreparedLoad {
  /** Returns the requests of the next measurement in their order. */
  readonly take: (load: { readonly seconds: number; readonly connections: number }) => Promise<Requests>;
  /** Receives the number of sent requests of the last measurement. */
  readonly sent?: (count: number) => void;
}

const namespace = "bench";
/** The maximum number of names in one response of the catalog. RestAdapter has no such limit. */
const listLimit = 1_000;
/** More changes per second than any server on this machine handles, so that no list ends early. */
const changesPerSecondMax = 40_000;
/** More versions per second than any server on this machine commits, for the first measurement of each. */
const versionsPerSecondMax = 5_000;
/**
 * The ratio of staged versions to those that the last measurement committed. Unused ones are additional writes during
 * the measurement.
 */
const stagedPerCommitted = 3;
const versionsPerSecondMin = 500;
const manifest = Buffer.alloc(1024, "manifest ");
/** The number of concurrent requests that prepare a server. */
const sentAtOnce = 32;
/**
 * The number of tables per connection that versions are committed to in turn, so that the previous version has its
 * response long before the next one is sent, on whichever connection.
 */
const tablesPerConnection = 32;

export const describeTable = {
  name: "describe-table",
  prepare: (server, size) => onEachTable(server, size, "describe"),
} as const satisfies Scenario;

export const scenarios = [
  describeTable,
  {
    name: "list-tables",
    prepare: async (server, size) => {
      await makeTables(server, size);
      const path = `/v1/namespace/${namespace}/table/list?delimiter=%24&limit=${listLimit}`;
      const request: LoadRequest = { method: "GET", path };
      return { take: async () => ({ list: [request], mayRepeat: true }) };
    },
  },
  {
    name: "declare-table",
    prepare: async (server) => {
      await makeNamespace(server);
      return manyNew((number) => onTable(tableName(number), "declare"));
    },
  },
  {
    name: "create-namespace",
    prepare: async () =>
      manyNew((number) => ({ method: "POST", path: `/v1/namespace/n_${number}/create?delimiter=%24`, body: "{}" })),
  },
  { name: "table-exists", prepare: (server, size) => onEachTable(server, size, "exists") },
  {
    name: "create-table-version",
    isOfDisk: true,
    prepare: async (server, { connections }) => {
      await makeNamespace(server);
      let made = 0;
      const open = async () => {
        made += 1;
        const name = tableName(made);
        return openHistory(name, await declare(server, name));
      };
      const ring = await pMap(Array(connections * tablesPerConnection), open, { concurrency: sentAtOnce });
      let order: History[] = [];
      let versionsPerSecond = versionsPerSecondMax;
      let measured = { seconds: 1, connections };
      return {
        take: async (load) => {
          const { seconds } = load;
          // The rate of another number of connections is no indication.
          if (load.connections !== measured.connections) versionsPerSecond = versionsPerSecondMax;
          measured = load;
          // The last request of the previous measurement left its version in doubt, so its table is no longer used.
          for (const [index, history] of ring.entries()) if (history.isInDoubt) ring[index] = await open();
          order = Array.from({ length: Math.ceil(versionsPerSecond * seconds) }, (_, number) =>
            at(ring, number % ring.length),
          );
          return { list: order.map((history) => history.stage()), mayRepeat: false };
        },
        sent: (count) => {
          versionsPerSecond = Math.max(versionsPerSecondMin, (stagedPerCommitted * count) / measured.seconds);
          for (const history of order.slice(count)) history.takeBack();
          for (const history of order.slice(Math.max(0, count - ring.length / 2), count)) history.isInDoubt = true;
        },
      };
    },
  },
] as const satisfies readonly Scenario[];

/** The request to a server that does nothing. */
export const constantRequest = onTable(tableName(0), "describe");

async function onEachTable(server: Server, size: LoadSize, operation: string): Promise<PreparedLoad> {
  await makeTables(server, size);
  const list = Array.from({ length: size.tables }, (_, number) => onTable(tableName(number), operation));
  return { take: async () => ({ list, mayRepeat: true }) };
}

/** Prepares requests that each create something new. */
function manyNew(requestOf: (number: number) => LoadRequest): PreparedLoad {
  let taken = 0;
  return {
    take: async ({ seconds }) => {
      const list = Array.from({ length: changesPerSecondMax * seconds }, (_, number) => requestOf(taken + number));
      taken += list.length;
      return { list, mayRepeat: false };
    },
  };
}

async function makeTables(server: Server, { tables }: LoadSize): Promise<void> {
  await makeNamespace(server);
  const [first, others] = [tableName(0), Array.from({ length: tables - 1 }, (_, number) => tableName(number + 1))];
  await declare(server, first);
  if (server.copyTable === undefined) await pMap(others, (name) => declare(server, name), { concurrency: sentAtOnce });
  else server.copyTable(identifier(first), others.map(identifier));
}

async function makeNamespace(server: Server): Promise<void> {
  await send(server, { method: "POST", path: `/v1/namespace/${namespace}/create?delimiter=%24`, body: "{}" });
}

/** Declares a table. @returns Its location. */
async function declare(server: Server, table: string): Promise<string> {
  return JSON.parse(await send(server, onTable(table, "declare"))).location;
}

/** Returns a request as Lance's clients send it, with a percent-encoded identifier and an explicit delimiter. */
function onTable(table: string, operation: string, body: object = {}): LoadRequest {
  return {
    method: "POST",
    path: `/v1/table/${encodeURIComponent(identifier(table))}/${operation}?delimiter=%24`,
    body: JSON.stringify(body),
  };
}

function identifier(table: string): string {
  return `${namespace}$${table}`;
}

function tableName(number: number): string {
  return `t_${number.toString().padStart(3, "0")}`;
}

interface History {
  /** Reports whether the outcome of the last request is unknown. */
  isInDoubt: boolean;
  /** Writes the staged manifest of the next version, as a client does before a commit. @returns The commit. */
  stage(): LoadRequest;
  /** Reverts the last call of `stage`, whose commit is not sent. */
  takeBack(): void;
}

function openHistory(table: string, location: string): History {
  const folder = `${parseLocation(location).path}/_versions`;
  mkdirSync(`/${folder}`, { recursive: true });
  let version = 0;
  return {
    isInDoubt: false,
    stage: () => {
      version += 1;
      const path = `${folder}/${manifestName(version, "V2")}-${crypto.randomUUID()}`;
      writeFileSync(`/${path}`, manifest);
      return onTable(table, "version/create", {
        version,
        manifest_path: path,
        manifest_size: manifest.length,
        naming_scheme: "V2",
      });
    },
    takeBack: () => {
      version -= 1;
    },
  };
}

function at<Item>(items: readonly Item[], index: number): Item {
  const item = items[index];
  if (item === undefined) throw new Error(`the item ${index} does not exist`);
  return item;
}
