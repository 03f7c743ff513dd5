const pollMs = 500;

/**
 * Calls back once when the parent of this process has exited, if npm or npx started it. npm forwards SIGTERM only to
 * the shell between them, which exits and leaves its child running. A program with a different parent outlives it, as
 * with nohup.
 */
export function onNpmExit(callback: () => void): Disposable {
  const parent = process.ppid;
  const poll = () => {
    if (process.ppid === parent) return;
    clearInterval(timer);
    callback();
  };
  const timer = process.env.npm_command === undefined ? undefined : setInterval(poll, pollMs).unref();
  return { [Symbol.dispose]: () => clearInterval(timer) };
}
