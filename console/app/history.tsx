import { useQuery } from "@tanstack/preact-query";
import type { Identifier } from "@tiltyard/protocol";
import { useState } from "preact/hooks";
import { type AnswerTo, call } from "./api.ts";
import { ago, bytes, dateAndTime, day, timeOfDay } from "./format.ts";
import { Pages } from "./list.tsx";
import { readAll, useList } from "./queries.ts";
import type { PageProps } from "./routes.ts";
import { Empty, Hint, Loaded } from "./view.tsx";

type Tags = AnswerTo<"listTableTags">["tags"];
type Version = AnswerTo<"listTableVersions">["versions"][number];

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
export function History({ id }: PageProps) {
  const [branch, setBranch] = useState(mainBranch);
  const tags = useTags(id);
  return (
    <Loaded query={useBranches(id)}>
      {(branches) => {
        const from = branches[branch];
        return (
          <>
            <fieldset class="branches">
              <legend class="visually-hidden">Branches</legend>
              <span class="hint">Branch</span>
              {[mainBranch, ...Object.keys(branches).sort()].map((name) => (
                <button
                  key={name}
                  type="button"
                  class="outline small"
                  aria-pressed={name === branch}
                  onClick={() => setBranch(name)}
                >
                  {name}
                </button>
              ))}
            </fieldset>
            {from && (
              <Hint>
                Made from {from.parentBranch ?? mainBranch}, version {from.parentVersion}.
              </Hint>
            )}
            <Loaded query={tags}>{(known) => <Versions key={branch} id={id} branch={branch} tags={known} />}</Loaded>
          </>
        );
      }}
    </Loaded>
  );
}

/** The versions of a branch as a timeline, the latest first, with a heading for each day. */
function Versions({ id, branch, tags }: { readonly id: Identifier; readonly branch: string; readonly tags: Tags }) {
  const request = { id, descending: true, limit, ...(branch !== mainBranch && { branch }) };
  const list = useList("listTableVersions", request, ({ versions }) => versions);
  const dayOf = (version: Version | undefined) =>
    version?.timestamp_millis === undefined ? "At an unknown time" : day(version.timestamp_millis);
  const tagsOf = ({ version }: Version) =>
    Object.keys(tags).filter(
      (name) => (tags[name]?.branch ?? mainBranch) === branch && tags[name]?.version === version,
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
              <VersionItem key={version.version} of={version} isLatest={index === 0} tags={tagsOf(version)} />
            </>
          ))}
        </ol>
      )}
      empty={() => (
        <Empty>
          <p>No version yet.</p>
          <Hint>The table is declared, and nothing was written to it.</Hint>
        </Empty>
      )}
      more="Show older versions"
    />
  );
}

function VersionItem({
  of: { version, timestamp_millis: at, manifest_size: size, metadata },
  isLatest,
  tags,
}: {
  readonly of: Version;
  readonly isLatest: boolean;
  readonly tags: readonly string[];
}) {
  const more = Object.entries(metadata ?? {}).map(([name, value]) => ` · ${name}: ${value}`);
  return (
    <li class={isLatest ? "version latest" : "version"}>
      <div>
        <strong>Version {version}</strong>
        {isLatest && <span class="badge accent">latest</span>}
        {tags.map((tag) => (
          <span class="badge tag" key={tag}>
            {tag}
          </span>
        ))}
      </div>
      <div class="hint">
        {at !== undefined && (
          <time dateTime={new Date(at).toISOString()} title={dateAndTime(at)}>
            {timeOfDay(at)}, {ago(at)}
          </time>
        )}
        {size !== undefined && ` · manifest of ${bytes(size)}`}
        {more}
      </div>
    </li>
  );
}
