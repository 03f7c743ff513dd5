import { mkdirSync, writeFileSync } from "node:fs";
import { manifestName } from "../../service/commits/manifest.ts";
import { parseLocation } from "../../service/storage/location.ts";
import { type LoadRequest, type NextRequest, send, type Target } from "./load.ts";

/** One kind of request. Every server gets it on tables of its own. */
export interface Scenario {
  readonly name: string;
  /** Makes what the requests need on a server that holds nothing yet. */
  readonly prepare: (server: Target, load: { readonly connections: number }) => Promise<PreparedLoad>;
}

export interface PreparedLoad {
  readonly next: NextRequest;
  /** Makes what the next measurement will use up. */
  readonly refill?: (seconds: number) => void;
}

const tables = 100;
const namespace = "bench";
/** More than any server commits, so that no measurement ends early. */
const versionsPerSecondMax = 3_000;
const manifest = Buffer.alloc(1024, "manifest ");

export const scenarios = [
  {
    name: "describe-table",
    prepare: async (server) => {
      await makeTables(server);
      const requests = Array.from({ length: tables }, (_, number) => onTable(tableName(number), "describe"));
      let sent = 0;
      return {
        next: () => {
          sent += 1;
          return requests[sent % tables];
        },
      };
    },
  },
  {
    name: "list-tables",
    prepare: async (server) => {
      await makeTables(server);
      const request: LoadRequest = { method: "GET", path: `/v1/namespace/${namespace}/table/list?delimiter=%24` };
      return { next: () => request };
    },
  },
  {
    name: "declare-table",
    prepare: async (server) => {
      await makeNamespace(server);
      let declared = 0;
      return {
        next: () => {
          declared += 1;
          return onTable(tableName(declared), "declare");
        },
      };
    },
  },
  {
    name: "create-namespace",
    prepare: async () => {
      let created = 0;
      return {
        next: () => {
          created += 1;
          return { method: "POST", path: `/v1/namespace/n_${created}/create?delimiter=%24`, body: "{}" };
        },
      };
    },
  },
  {
    name: "table-exists",
    prepare: async (server) => {
      await makeTables(server);
      const requests = Array.from({ length: tables }, (_, number) => onTable(tableName(number), "exists"));
      let sent = 0;
      return {
        next: () => {
          sent += 1;
          return requests[sent % tables];
        },
      };
    },
  },
  {
    // Each connection commits to a table of its own, so that there are no conflicts.
    name: "create-table-version",
    prepare: async (server, { connections }) => {
      await makeNamespace(server);
      const histories: History[] = [];
      for (let number = 0; number < connections; number += 1)
        histories.push(openHistory(tableName(number), await declare(server, tableName(number))));
      return {
        next: (connection) => histories[connection]?.next(),
        refill: (seconds) => {
          for (const history of histories)
            history.stageAhead(1 + Math.ceil((versionsPerSecondMax * seconds) / connections));
        },
      };
    },
  },
] as const satisfies readonly Scenario[];

/** What is sent to a server that does nothing. */
export const constantRequest = onTable(tableName(0), "describe");

async function makeTables(server: Target): Promise<void> {
  await makeNamespace(server);
  for (let number = 0; number < tables; number += 1) await declare(server, tableName(number));
}

async function makeNamespace(server: Target): Promise<void> {
  await send(server, { method: "POST", path: `/v1/namespace/${namespace}/create?delimiter=%24`, body: "{}" });
}

/** @returns The location of the new table. */
async function declare(server: Target, table: string): Promise<string> {
  return JSON.parse(await send(server, onTable(table, "declare"))).location;
}

/** A request as Lance's clients write it: the identifier percent-encoded, the delimiter named. */
function onTable(table: string, operation: string, body: object = {}): LoadRequest {
  return {
    method: "POST",
    path: `/v1/table/${namespace}%24${table}/${operation}?delimiter=%24`,
    body: JSON.stringify(body),
  };
}

function tableName(number: number): string {
  return `t_${number.toString().padStart(3, "0")}`;
}

interface History {
  /** Writes staged manifests, as a client does before it commits, until so many versions can be committed. */
  stageAhead(versions: number): void;
  /** The commit of the next version; undefined when its manifest is not staged. */
  next(): LoadRequest | undefined;
}

function openHistory(table: string, location: string): History {
  const folder = `${parseLocation(location).path}/_versions`;
  mkdirSync(`/${folder}`, { recursive: true });
  const staged: string[] = [];
  let committed = 0;
  return {
    stageAhead: (versions) => {
      while (staged.length < committed + versions) {
        const path = `${folder}/${manifestName(staged.length + 1, "V2")}-${crypto.randomUUID()}`;
        writeFileSync(`/${path}`, manifest);
        staged.push(path);
      }
    },
    next: () => {
      const path = staged[committed];
      if (path === undefined) return undefined;
      committed += 1;
      return onTable(table, "version/create", {
        version: committed,
        manifest_path: path,
        manifest_size: manifest.length,
        naming_scheme: "V2",
      });
    },
  };
}
