/** The settings that the runner reads from the environment. Its key is never on the command line, which others could see. */
export interface Environment {
  readonly catalogUrl: string | undefined;
  readonly apiKey: string | undefined;
  readonly rayToken: string | undefined;
  /** The environment for Ray and thus for jobs, without Tiltyard's settings, which include the runner's own key. */
  readonly forRay: NodeJS.ProcessEnv;
}

/** Returns a variable; an empty one counts as absent. */
const text = (value: string | undefined) => value || undefined;

export function readConfig(environment: NodeJS.ProcessEnv): Environment {
  return {
    catalogUrl: text(environment.TILTYARD_CATALOG_URL),
    apiKey: text(environment.TILTYARD_API_KEY),
    rayToken: text(environment.RAY_AUTH_TOKEN),
    forRay: Object.fromEntries(Object.entries(environment).filter(([name]) => !name.startsWith("TILTYARD_"))),
  };
}
