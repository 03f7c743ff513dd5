import { useQuery } from "@tanstack/preact-query";
import { arrowTypeText, type Identifier, jobTitle, ownValue } from "@tiltyard/protocol";
import { useState } from "preact/hooks";
import { type AnswerTo, call } from "./api.ts";
import { may } from "./caller.ts";
import { ago, amount, dateAndTime, day, parseName, timeOfDay } from "./format.ts";
import { Pages } from "./list.tsx";
import { readAll, useAction, useCall, useList } from "./queries.ts";
import { linkTo, type PageProps } from "./routes.ts";
import {
  announce,
  confirm,
  Empty,
  Failure,
  Field,
  Hint,
  Input,
  Loaded,
  Mono,
  messageOf,
  SmallButton,
} from "./view.tsx";

type Tags = AnswerTo<"listTableTags">["tags"];
type Version = AnswerTo<"listTableHistory">["versions"][number];

const limit = 50;
export const mainBranch = "main";

/** Reads all tags of a table by name. Like branches, they are few. */
export function useTags(id: Identifier) {
  return useQuery({
    queryKey: ["tags", id],
    queryFn: ({ signal }) =>
      readAll(async (page) => {
        const { tags, page_token } = await call("listTableTags", { id, ...page }, signal);
        return [tags, page_token];
      }),
  });
}

/** Reads all branches of a table by name, except for main. */
export function useBranches(id: Identifier) {
  return useQuery({
    queryKey: ["branches", id],
    queryFn: async ({ signal }) => {
      const { [mainBranch]: _, ...others } = await readAll(async (page) => {
        const { branches, page_token } = await call("listTableBranches", { id, ...page }, signal);
        return [branches, page_token];
      });
      return others;
    },
  });
}

/** The versions of a table by branch. */
export function History({ id, caller }: PageProps) {
  const [branch, setBranch] = useState(mainBranch);
  const tags = useTags(id);
  return (
    <Loaded query={useBranches(id)}>
      {(branches) => {
        const from = ownValue(branches, branch);
        return (
          <>
            <fieldset class="branches">
              <legend class="visually-hidden">Branches</legend>
              <span class="hint">Branch</span>
              {[mainBranch, ...Object.keys(branches).sort()].map((name) => (
                <SmallButton key={name} aria-pressed={name === branch} onClick={() => setBranch(name)}>
                  {name}
                </SmallButton>
              ))}
            </fieldset>
            {from && (
              <Hint>
                Created from {from.parentBranch ?? mainBranch}, version {from.parentVersion}.
              </Hint>
            )}
            <Loaded query={tags}>
              {(known) => (
                <Versions key={branch} id={id} branch={branch} tags={known} mayChange={may(caller, "writer", id)} />
              )}
            </Loaded>
          </>
        );
      }}
    </Loaded>
  );
}

/** The versions of a branch as a timeline, the latest first, with a heading for each day. */
function Versions({
  id,
  branch,
  tags,
  mayChange,
}: {
  readonly id: Identifier;
  readonly branch: string;
  readonly tags: Tags;
  readonly mayChange: boolean;
}) {
  const list = useList("listTableHistory", { id, branch, limit }, ({ versions }) => versions);
  const dayOf = (version: Version | undefined) =>
    version?.timestamp_millis === undefined ? "At an unknown time" : day(version.timestamp_millis);
  const tagsOf = ({ version }: Version) =>
    Object.keys(tags).filter(
      (name) => (ownValue(tags, name)?.branch ?? mainBranch) === branch && ownValue(tags, name)?.version === version,
    );
  return (
    <Pages
      list={list}
      show={(versions) => (
        <ol class="timeline" aria-label={`Versions of ${branch}, the latest first`}>
          {versions.map((version, index) => (
            <>
              {(index === 0 || dayOf(version) !== dayOf(versions[index - 1])) && (
                <li class="day" key={dayOf(version)}>
                  {dayOf(version)}
                </li>
              )}
              <VersionItem
                key={version.version}
                id={id}
                branch={branch}
                of={version}
                before={versions[index + 1]}
                isLatest={index === 0}
                tags={tagsOf(version)}
                mayChange={mayChange}
              />
            </>
          ))}
        </ol>
      )}
      empty={() => (
        <Empty text="No version yet.">
          <Hint>The table is declared, and nothing was written to it.</Hint>
        </Empty>
      )}
      more="Show older versions"
    />
  );
}

function VersionItem({
  id,
  branch,
  of,
  before,
  isLatest,
  tags,
  mayChange,
}: {
  readonly id: Identifier;
  readonly branch: string;
  readonly of: Version;
  readonly before: Version | undefined;
  readonly isLatest: boolean;
  readonly tags: readonly string[];
  readonly mayChange: boolean;
}) {
  const [isOpened, setOpened] = useState(false);
  const { version, timestamp_millis: at, metadata, principal } = of;
  const more = Object.entries(metadata ?? {}).map(([name, value]) => ` · ${name}: ${value}`);
  return (
    <li class={isLatest ? "version latest" : "version"}>
      <div>
        <button type="button" class="toggle" aria-expanded={isOpened} onClick={() => setOpened(!isOpened)}>
          Version {version}
        </button>
        {isLatest && <span class="badge accent">latest</span>}
        {tags.map((tag) => (
          <span class="badge tag" key={tag}>
            {tag}
          </span>
        ))}
        <span>{whatChanged(of, before)}</span>
        {principal && <Principal name={principal} />}
      </div>
      <div class="hint">
        {at !== undefined && (
          <time dateTime={new Date(at).toISOString()} title={dateAndTime(at)}>
            {timeOfDay(at)}, {ago(at)}
          </time>
        )}
        {more}
      </div>
      {isOpened && (
        <>
          <Changes id={id} branch={branch} version={version} />
          <div class="buttons">
            <a href={linkTo("table", id, "data", { branch, version: String(version) })}>View data at this version</a>
            {mayChange && <VersionActions id={id} branch={branch} version={version} isLatest={isLatest} />}
          </div>
        </>
      )}
    </li>
  );
}

const kinds: Readonly<Record<string, string>> = {
  CreateTable: "created the table",
  CreateTableVersion: "commit of a client",
  AdoptTableVersion: "commit without the catalog",
  InsertIntoTable: "rows added",
  UpdateTable: "rows updated",
  DeleteFromTable: "rows deleted",
  MergeInsertIntoTable: "rows merged",
  RestoreTable: "earlier version restored",
  AlterTableAddColumns: "columns added",
  AlterTableDropColumns: "columns dropped",
  AlterTableAlterColumns: "columns changed",
  CreateTableIndex: "index built",
  CreateTableScalarIndex: "index built",
  // Lance's operations, which clients commit.
  Append: "rows added",
  Delete: "rows deleted",
  Overwrite: "table overwritten",
  CreateIndex: "indices changed",
  Rewrite: "fragments compacted",
  Merge: "columns added or filled",
  Restore: "earlier version restored",
  Update: "rows updated or merged",
  Project: "columns dropped or renamed",
  UpdateConfig: "metadata changed",
  DataReplacement: "column filled",
};

/** The operations that commit a version which a client wrote. */
const commits = ["CreateTableVersion", "BatchCreateTableVersions", "BatchCommitTables"];

/** Returns what a version did to a table; empty if neither the catalog nor its manifest has a record of it. */
function kindOf({ version, operation = "", lance_operation: ofLance }: Version): string {
  if (ofLance === "Overwrite" && version === 1) return ownValue(kinds, "CreateTable") ?? "";
  const name = commits.includes(operation) ? (ofLance ?? operation) : operation;
  return ownValue(kinds, name) ?? name.replaceAll(/(?<=[a-z])(?=[A-Z])/g, " ").toLowerCase();
}

/** Returns what a version did to a table and to the number of its rows, as far as it is known. */
export function whatChanged(of: Version, before: Version | undefined): string {
  const { version, num_rows: now } = of;
  const earlier = version === 1 ? 0 : before?.version === version - 1 ? before.num_rows : undefined;
  const net = now === undefined || earlier === undefined ? 0 : now - earlier;
  const kind = kindOf(of);
  const [, verb] = /^rows (added|deleted)$/.exec(kind) ?? [];
  if (net !== 0 && verb !== undefined) return `${amount(Math.abs(net), "row")} ${verb}`;
  const rows = net === 0 ? "" : `${amount(Math.abs(net), "row")} ${net > 0 ? "added" : "deleted"}`;
  return [kind, rows].filter(Boolean).join(" · ");
}

/** A principal, with a link to the job that acts in its name. */
export function Principal({ name }: { readonly name: string }) {
  const [, job, owner] = /^job:(\S+) for (.*)$/.exec(name) ?? [];
  if (job === undefined) return <Mono>{name}</Mono>;
  return <JobLink id={parseName(job)} owner={owner ?? ""} />;
}

function JobLink({ id, owner }: { readonly id: Identifier; readonly owner: string }) {
  const { data } = useCall("describeJob", { id });
  return (
    <span>
      <a href={linkTo("job", id)}>{data === undefined ? "a job" : jobTitle(data.job)}</a>, a job of <Mono>{owner}</Mono>
    </span>
  );
}

/** The rows that a version added or deleted, and the columns that it added or removed or whose type it changed. */
function Changes({
  id,
  branch,
  version,
}: {
  readonly id: Identifier;
  readonly branch: string;
  readonly version: number;
}) {
  const query = useQuery({
    queryKey: ["changes", id, branch, version],
    queryFn: async ({ signal }) => {
      const read = async (at: number) => {
        const request = { id, version: at, ...(branch !== mainBranch && { branch }) };
        const [rows, { schema }] = await Promise.all([
          call("countTableRows", request, signal),
          call("describeTable", { ...request, load_detailed_metadata: true }, signal),
        ]);
        return { rows, types: new Map(schema?.fields.map(({ name, type }) => [name, arrowTypeText(type)])) };
      };
      const before =
        version > 1 ? await read(version - 1).catch(() => undefined) : { rows: 0, types: new Map<string, string>() };
      return { now: await read(version), before };
    },
  });
  return (
    <Loaded query={query} instead={(error) => <Hint>The changes are unknown: {messageOf(error)}</Hint>}>
      {({ now, before }) => {
        const rows = amount(now.rows, "row");
        if (before === undefined) return <Hint>{rows}. The previous version no longer exists.</Hint>;
        const net = now.rows - before.rows;
        const added = [...now.types.keys()].filter((name) => !before.types.has(name));
        const removed = [...before.types.keys()].filter((name) => !now.types.has(name));
        const retyped = [...now.types].flatMap(([name, type]) => {
          const old = before.types.get(name);
          return old === undefined || old === type ? [] : [`${name} from ${old} to ${type}`];
        });
        const known = [
          net > 0 && `${amount(net, "row")} added`,
          net < 0 && `${amount(-net, "row")} deleted`,
          net === 0 && "as many rows as before",
          added.length > 0 && `columns added: ${added.join(", ")}`,
          removed.length > 0 && `columns removed: ${removed.join(", ")}`,
          retyped.length > 0 && `types changed: ${retyped.join(", ")}`,
        ];
        return <p class="changes">{[...known.filter(Boolean), `${rows} in all`].join(" · ")}</p>;
      }}
    </Loaded>
  );
}

function VersionActions({
  id,
  branch,
  version,
  isLatest,
}: {
  readonly id: Identifier;
  readonly branch: string;
  readonly version: number;
  readonly isLatest: boolean;
}) {
  const { ask, run, failed } = useAction();
  const at = { id, version, ...(branch !== mainBranch && { branch }) };
  const field = (
    <Field label="Tag">
      <Input name="tag" required />
    </Field>
  );
  const tag = () =>
    ask(`Tag version ${version}`, field, "Create the tag", async (text) => {
      await call("createTableTag", { ...at, tag: text("tag") });
      announce(`Version ${version} has the tag ${text("tag")}.`);
    });
  async function restore() {
    const text = `A new version with the rows and columns of version ${version} becomes the latest. Nothing is deleted.`;
    if (!(await confirm({ title: `Restore version ${version}?`, text, action: "Restore it" }))) return;
    run(async () => {
      await call("restoreTable", at);
      announce(`Version ${version} is restored.`);
    });
  }
  return (
    <>
      <SmallButton onClick={tag}>Tag version {version}</SmallButton>
      {!isLatest && <SmallButton onClick={restore}>Restore version {version}</SmallButton>}
      <Failure text={failed} />
    </>
  );
}
