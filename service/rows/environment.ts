/** Matches the variables that storage, proxies and certificates need. No setting or secret of the catalog matches. */
const inherited =
  /^(PATH|HOME|USER|LANG|LC_\w+|TZ|TMPDIR|AWS_\w+|GOOGLE_\w+|GCE_\w+|AZURE_\w+|(https?|all|no)_proxy|PROXY_\w+|ALLOW_HTTP|SSL_CERT_\w+|NODE_EXTRA_CA_CERTS|LANCE\w*_\w+|MALLOC_\w+)$/i;
/** The stack size of the library's threads, by default 2 MiB. The library parses and plans SQL recursively. */
const stackBytes = 64 * 1024 ** 2;
/** The maximum read-ahead of a query, by default 2 GiB. */
const readAheadBytes = 32 * 1024 ** 2;

/** Returns the environment of the child that runs the Lance library. @param environment The environment of the catalog. */
export function childEnvironment(environment: Readonly<Record<string, string | undefined>>): Record<string, string> {
  return {
    // Without this setting, each search whose columns lack `_distance` prints a line.
    LANCEDB_LOG: "error",
    LANCE_DEFAULT_IO_BUFFER_SIZE: String(readAheadBytes),
    RUST_MIN_STACK: String(stackBytes),
    NODE_ENV: "production",
    ...Object.fromEntries(
      Object.entries(environment).flatMap(([name, value]) =>
        value !== undefined && inherited.test(name) ? [[name, value]] : [],
      ),
    ),
  };
}
