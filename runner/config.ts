import { z } from "zod";

/** What the runner reads from the environment. Its key is never on the command line: others could see it there. */
export interface Environment {
  readonly catalogUrl: string | undefined;
  readonly apiKey: string | undefined;
  readonly rayToken: string | undefined;
  /** For Ray and so for jobs: without settings of Tiltyard's, which name the runner's own key. */
  readonly forRay: NodeJS.ProcessEnv;
}

const text = z.string().min(1).optional();

export function readConfig(environment: NodeJS.ProcessEnv): Environment {
  return {
    catalogUrl: text.parse(environment.TILTYARD_CATALOG_URL),
    apiKey: text.parse(environment.TILTYARD_API_KEY),
    rayToken: text.parse(environment.RAY_AUTH_TOKEN),
    forRay: Object.fromEntries(Object.entries(environment).filter(([name]) => !name.startsWith("TILTYARD_"))),
  };
}
