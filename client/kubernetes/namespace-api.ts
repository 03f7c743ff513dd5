import { ApiException, CoreV1Api, CustomObjectsApi, type KubeConfig } from "@kubernetes/client-node";
import { isMissingType, KubernetesError } from "./kubernetes-error.ts";

/** The actions in one namespace on the API server. Each failure is a KubernetesError that contains the attempted action. */
export abstract class NamespaceApi {
  readonly namespace: string;
  protected readonly objects: CustomObjectsApi;
  protected readonly core: CoreV1Api;
  readonly #whenForbidden: string;

  /** @param whenForbidden The recommendation for a caller without a required right. */
  constructor(config: KubeConfig, namespace: string, whenForbidden: string) {
    this.namespace = namespace;
    this.objects = config.makeApiClient(CustomObjectsApi);
    this.core = config.makeApiClient(CoreV1Api);
    this.#whenForbidden = whenForbidden;
  }

  /** Runs an action. @throws KubernetesError */
  protected async try<Answer>(what: string, work: () => Promise<Answer>): Promise<Answer> {
    try {
      return await work();
    } catch (error) {
      throw new KubernetesError(what, error, this.#whenForbidden);
    }
  }

  /** Runs an action. @returns undefined for a response with one of these statuses. @throws KubernetesError */
  protected async unless<Answer>(
    statuses: readonly number[],
    what: string,
    work: () => Promise<Answer>,
  ): Promise<Answer | undefined> {
    return this.try(what, () =>
      work().catch((error) => {
        if (error instanceof ApiException && statuses.includes(error.code) && !isMissingType(error)) return undefined;
        throw error;
      }),
    );
  }
}
