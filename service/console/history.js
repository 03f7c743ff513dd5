import { call } from "./calls.js";
import { ago, bytes, dateAndTime, day, timeOfDay } from "./format.js";
import { useState } from "./libraries/hooks.js";
import { Pages, readAll, shown, useLoaded, usePages } from "./loading.js";
import { empty, hint, html } from "./view.js";

/**
 * @typedef {import("./format.js").Identifier} Identifier
 * @typedef {import("./calls.js").AnswerTo<"listTableTags">["tags"]} Tags
 * @typedef {import("./calls.js").AnswerTo<"listTableVersions">["versions"][number]} Version
 */

const limit = 50;
export const mainBranch = "main";

/** Reads all tags of a table by name. Like branches, they are few. @param {Identifier} id @param {AbortSignal} signal */
export const readTags = (id, signal) =>
  readAll(
    (page) => call("listTableTags", { id, ...page }, signal),
    ({ tags }) => tags,
  );

/** Shows the versions of a table by branch. @param {import("./main.js").PageProps} props */
export function History({ id }) {
  const [branch, setBranch] = useState(mainBranch);
  const loaded = useLoaded(async (signal) => {
    const load = (/** @type {{ page_token: string | undefined }} */ page) =>
      call("listTableBranches", { id, ...page }, signal);
    return Promise.all([readAll(load, (answer) => answer.branches), readTags(id, signal)]);
  });
  return shown(loaded, ([branches, tags]) => {
    const names = Object.keys(branches).filter((name) => name !== mainBranch);
    const from = branches[branch];
    return html`
      <fieldset class="branches">
        <legend class="visually-hidden">Branches</legend><span class="hint">Branch</span>
        ${[mainBranch, ...names.sort()].map(
          (name) =>
            html`<button type="button" class="outline small" aria-pressed=${name === branch} onClick=${() => setBranch(name)}>${name}</button>`,
        )}
      </fieldset>
      ${from && hint(`Made from ${from.parentBranch ?? mainBranch}, version ${from.parentVersion}.`)}
      <${Versions} key=${branch} id=${id} branch=${branch} tags=${tags} />`;
  });
}

/**
 * Shows the versions of a branch as a timeline, the latest first, with a heading for each day.
 *
 * @param {{ id: Identifier, branch: string, tags: Tags }} props
 */
function Versions({ id, branch, tags }) {
  const request = { id, descending: true, limit, ...(branch !== mainBranch && { branch }) };
  const pages = usePages(
    (page, signal) => call("listTableVersions", { ...request, ...page }, signal),
    ({ versions }) => versions,
  );
  const dayOf = (/** @type {Version | undefined} */ version) =>
    version?.timestamp_millis === undefined ? "At an unknown time" : day(version.timestamp_millis);
  const show = (/** @type {readonly Version[]} */ versions) =>
    html`<ol class="timeline" aria-label=${`Versions of ${branch}, the latest first`}>${versions.map(
      (version, index) =>
        html`${(index === 0 || dayOf(version) !== dayOf(versions[index - 1])) && html`<li class="day">${dayOf(version)}</li>`}
          ${versionItem(version, index === 0, tagsOf(tags, branch, version.version))}`,
    )}</ol>`;
  const none = () =>
    empty(html`<p>No version yet.</p>${hint("The table is declared, and nothing was written to it.")}`);
  return html`<${Pages} pages=${pages} show=${show} empty=${none} more="Show older versions" />`;
}

/** @param {Tags} tags @param {string} branch @param {number} version */
function tagsOf(tags, branch, version) {
  const here = Object.entries(tags).filter(
    ([, tag]) => (tag.branch ?? mainBranch) === branch && tag.version === version,
  );
  return here.map(([name]) => name);
}

/** @param {Version} version @param {boolean} isLatest @param {readonly string[]} tags */
function versionItem({ version, timestamp_millis: at, manifest_size: size, metadata }, isLatest, tags) {
  const more = Object.entries(metadata ?? {}).map(([name, value]) => ` · ${name}: ${value}`);
  return html`<li key=${version} class=${isLatest ? "version latest" : "version"}>
    <div><strong>Version ${version}</strong>${isLatest && html`<span class="badge accent">latest</span>`}${tags.map((tag) => html`<span class="badge tag">${tag}</span>`)}</div>
    <div class="hint">
      ${at !== undefined && html`<time datetime=${new Date(at).toISOString()} title=${dateAndTime(at)}>${timeOfDay(at)}, ${ago(at)}</time>`}
      ${size !== undefined && ` · manifest of ${bytes(size)}`}${more}
    </div>
  </li>`;
}
