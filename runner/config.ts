/** What the runner reads from the environment. Its key is never on the command line: others could see it there. */
export interface Environment {
  readonly catalogUrl: string | undefined;
  readonly apiKey: string | undefined;
  readonly rayToken: string | undefined;
  /** For Ray and so for jobs: without settings of Tiltyard's, which name the runner's own key. */
  readonly forRay: NodeJS.ProcessEnv;
}

/** An empty variable counts as absent. */
const text = (value: string | undefined) => value || undefined;

export function readConfig(environment: NodeJS.ProcessEnv): Environment {
  return {
    catalogUrl: text(environment.TILTYARD_CATALOG_URL),
    apiKey: text(environment.TILTYARD_API_KEY),
    rayToken: text(environment.RAY_AUTH_TOKEN),
    forRay: Object.fromEntries(Object.entries(environment).filter(([name]) => !name.startsWith("TILTYARD_"))),
  };
}
