import { ApiException, CoreV1Api, CustomObjectsApi, type KubeConfig } from "@kubernetes/client-node";
import { isMissingType, KubernetesError } from "./kubernetes-error.ts";

/**
 * The number of objects of a page. An object may have 1.5 MB, and members of a namespace create as many as they like,
 * which must not exhaust the memory of their reader.
 */
const pageLimit = 10;

/** A page of a list. The library names the token `_continue` in its own types only. */
interface Page<Item> {
  readonly items: readonly Item[];
  readonly metadata?: { readonly continue?: string; readonly _continue?: string };
}

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

  /**
   * Lists objects page by page and keeps a part of each.
   *
   * @param most The number of objects after which the list ends.
   * @throws KubernetesError
   */
  protected async pages<Item, Kept>(
    what: string,
    list: (page: { readonly limit: number; readonly _continue?: string }) => Promise<Page<Item>>,
    keep: (item: Item) => Kept,
    most: number,
  ): Promise<readonly Kept[]> {
    const kept: Kept[] = [];
    let token: string | undefined;
    do {
      const page = { limit: pageLimit, ...(token !== undefined && { _continue: token }) };
      const { items, metadata } = await this.try(what, () => list(page));
      for (const item of items) kept.push(keep(item));
      token = metadata?._continue || metadata?.continue || undefined;
    } while (token !== undefined && kept.length < most);
    return kept;
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
