import { ApiException, CoreV1Api, CustomObjectsApi, type KubeConfig } from "@kubernetes/client-node";
import { isMissingType, KubernetesError } from "./kubernetes-error.ts";

/** What is done in one namespace on the API server. Each failure is a KubernetesError that says what was tried. */
export abstract class NamespaceApi {
  readonly namespace: string;
  protected readonly objects: CustomObjectsApi;
  protected readonly core: CoreV1Api;
  readonly #whenForbidden: string;

  /** @param whenForbidden What to do about a right that the caller lacks. */
  constructor(config: KubeConfig, namespace: string, whenForbidden: string) {
    this.namespace = namespace;
    this.objects = config.makeApiClient(CustomObjectsApi);
    this.core = config.makeApiClient(CoreV1Api);
    this.#whenForbidden = whenForbidden;
  }

  /** @throws KubernetesError */
  protected async try<Answer>(what: string, work: () => Promise<Answer>): Promise<Answer> {
    try {
      return await work();
    } catch (error) {
      throw new KubernetesError(what, error, this.#whenForbidden);
    }
  }

  /** @returns undefined for an answer with one of these statuses. @throws KubernetesError */
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
