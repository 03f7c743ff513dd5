/** The time in milliseconds after which a request to the Kubernetes API fails. */
const requestTimeoutMs = 30_000;

/** The part of a configuration of Kubernetes' library that prepares each request. */
interface Configuration {
  applySecurityAuthentication(request: { setSignal(signal: AbortSignal): void }): Promise<void>;
}

/**
 * Returns a configuration whose requests fail if they are not answered in time. Otherwise, Kubernetes' library waits five
 * minutes for a response, such as that of an API server behind a lost connection.
 */
export function withRequestTimeout<Config extends Configuration>(config: Config): Config {
  const prepare: Configuration["applySecurityAuthentication"] = async (request) => {
    const controller = new AbortController();
    // Kubernetes' library changes the message of errors, which that of AbortSignal.timeout does not allow.
    const abort = () => controller.abort(new Error(`no answer within ${requestTimeoutMs / 1_000} s`));
    AbortSignal.timeout(requestTimeoutMs).addEventListener("abort", abort);
    request.setSignal(controller.signal);
    await config.applySecurityAuthentication(request);
  };
  return Object.create(config, { applySecurityAuthentication: { value: prepare } });
}
