import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { ApiError, call, setCredential } from "./api.ts";
import type { Caller } from "./caller.ts";
import type { IssuerSession } from "./issuer.ts";
import { useTitle } from "./queries.ts";
import { mark } from "./shell.tsx";
import { Failure, messageOf } from "./view.tsx";

const kinds = [
  ["api-key", "API key"],
  ["token", "Token"],
] as const;

interface Props {
  readonly onCaller: (caller: Caller) => void;
  /** The issuer through which users can sign in. */
  readonly issuer: IssuerSession | undefined;
  /** The reason why another sign-in is needed. */
  readonly message: string;
}

export function SignInPage({ onCaller, issuer, message }: Props) {
  useTitle("Sign in");
  const [[kind, label], setKind] = useState<(typeof kinds)[number]>(kinds[0]);
  const [failed, setFailed] = useState(message);
  const [isRefused, setRefused] = useState(false);
  const [isBusy, setBusy] = useState(false);
  const secret = useRef<HTMLInputElement>(null);
  const first = useRef<HTMLButtonElement>(null);
  useLayoutEffect(() => (first.current ?? secret.current)?.focus(), []);

  function fail(text: string) {
    setFailed(text);
    setRefused(true);
    secret.current?.focus();
  }

  async function leave() {
    setFailed("");
    await issuer?.signIn().catch(() => setFailed(`${issuer.host} does not respond. Try again later.`));
  }

  async function submit(event: Event) {
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

  return (
    <main class="sign-in" id="main">
      <article>
        <form onSubmit={submit} noValidate>
          <p class="brand">
            {mark}
            <span>Tiltyard</span>
          </p>
          <h1 tabIndex={-1}>Sign in to the catalog</h1>
          {issuer && (
            <>
              <button ref={first} type="button" onClick={leave}>
                Sign in with {issuer.host}
              </button>
              <p class="hint">or with a key or a token:</p>
            </>
          )}
          <fieldset>
            <legend class="visually-hidden">Sign in with</legend>
            {kinds.map((each) => (
              <label key={each[0]}>
                <input type="radio" name="kind" checked={kind === each[0]} onChange={() => setKind(each)} />
                {each[1]}
              </label>
            ))}
          </fieldset>
          <label for="secret">{label}</label>
          <input
            id="secret"
            ref={secret}
            type="password"
            autocomplete="off"
            spellcheck={false}
            autocapitalize="off"
            required
            aria-invalid={isRefused || undefined}
            aria-describedby="sign-in-error sign-in-hint"
          />
          <div id="sign-in-error">
            <Failure text={failed} />
          </div>
          <button type="submit" class={issuer && "outline"} aria-disabled={isBusy}>
            Sign in
          </button>
          <small id="sign-in-hint">
            {issuer === undefined && isOnThisMachine() && (
              <>
                The data folder of a catalog on this machine has a key in the file <code>development.key</code>.{" "}
              </>
            )}
            The console keeps the key or token in this tab only, until you sign out or close it.
          </small>
        </form>
      </article>
    </main>
  );
}

function isOnThisMachine(): boolean {
  return ["127.0.0.1", "localhost", "[::1]"].includes(location.hostname);
}
