/** The settings of Ray that the runner reads from the environment. The client reads the catalog and its key. */
export interface Environment {
  readonly rayToken: string | undefined;
  /** The environment for Ray and thus for jobs, without Tiltyard's settings, which include the runner's own key. */
  readonly forRay: NodeJS.ProcessEnv;
}

export function readConfig(environment: NodeJS.ProcessEnv): Environment {
  return {
    // An empty variable counts as absent.
    rayToken: environment.RAY_AUTH_TOKEN || undefined,
    forRay: Object.fromEntries(Object.entries(environment).filter(([name]) => !name.startsWith("TILTYARD_"))),
  };
}
