import { ApiError, call, setCredential } from "./calls.js";
import { useLayoutEffect, useRef, useState } from "./libraries/hooks.js";
import { useTitle } from "./loading.js";
import { mark } from "./shell.js";
import { failure, html, messageOf } from "./view.js";

/** The kinds of credentials. */
const kinds = /** @type {const} */ ({ "api-key": "API key", token: "Token" });

/** @param {{ onCaller: (caller: import("./caller.js").Caller) => void, message?: string }} props `message` explains why another sign-in is needed. */
export function SignInPage({ onCaller, message = "" }) {
  useTitle("Sign in");
  const [kind, setKind] = useState(/** @type {keyof typeof kinds} */ ("api-key"));
  const [failed, setFailed] = useState(message);
  const [isRefused, setRefused] = useState(false);
  const [isBusy, setBusy] = useState(false);
  const secret = useRef(/** @type {HTMLInputElement | null} */ (null));
  useLayoutEffect(() => secret.current?.focus(), []);

  /** @param {string} text */
  function fail(text) {
    setFailed(text);
    setRefused(true);
    secret.current?.focus();
  }

  /** @param {Event} event */
  async function submit(event) {
    event.preventDefault();
    const value = secret.current?.value.trim() ?? "";
    if (value === "") return fail("Enter your API key, or a token of your issuer.");
    setBusy(true);
    setCredential({ kind, value });
    try {
      onCaller(await call("describeCaller", {}));
    } catch (error) {
      setCredential(undefined);
      const isUnknown = error instanceof ApiError && error.status === 401;
      fail(isUnknown ? `The catalog does not accept this: ${error.message}.` : messageOf(error));
      setBusy(false);
    }
  }

  return html`<main class="sign-in" id="main"><article><form onSubmit=${submit} novalidate>
    <p class="brand">${mark}<span>Tiltyard</span></p>
    <h1 tabindex="-1">Sign in to the catalog</h1>
    <fieldset>
      <legend class="visually-hidden">Sign in with</legend>
      ${Object.entries(kinds).map(
        ([value, text]) =>
          html`<label><input type="radio" name="kind" checked=${kind === value} onChange=${() => setKind(value === "token" ? "token" : "api-key")} />${text}</label>`,
      )}
    </fieldset>
    <label for="secret">${kinds[kind]}</label>
    <input id="secret" ref=${secret} type="password" autocomplete="off" spellcheck=${false} autocapitalize="off" required aria-invalid=${isRefused || undefined} aria-describedby="sign-in-error sign-in-hint" />
    <div id="sign-in-error">${failure(failed)}</div>
    <button type="submit" aria-disabled=${isBusy}>Sign in</button>
    <small id="sign-in-hint">It is kept until you sign out or close this tab, and in this tab only.</small>
  </form></article></main>`;
}
