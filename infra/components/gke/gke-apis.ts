import * as gcp from "@pulumi/gcp";
import * as pulumi from "@pulumi/pulumi";
import type { GkeConfig } from "../../config.ts";
import { createsDatabase } from "../../settings/catalog-settings.ts";

/** The service that the provider itself needs to read the project at each check of a service. */
const first = "cloudresourcemanager.googleapis.com";

/**
 * The services that every stack on GKE needs: `containerfilesystem` streams images, and `iamcredentials` lets clients
 * impersonate an account.
 */
const always = ["artifactregistry", "compute", "container", "containerfilesystem", "iam", "iamcredentials", "storage"];

const forDatabase = ["servicenetworking", "sqladmin"];

type GkeApisConfig = Pick<GkeConfig, "project" | "encryptionKey"> & {
  readonly catalog: Pick<GkeConfig["catalog"], "enabled" | "database">;
};

/**
 * Enables the services of Google that the stack calls. They remain enabled after the stack is destroyed, because other
 * parts of the project may use them by then.
 */
export class GkeApis extends pulumi.ComponentResource {
  /** The id of the project, which is known when its services are enabled, so that its users wait for them. */
  readonly project: pulumi.Output<string>;

  constructor(name: string, config: GkeApisConfig, options?: pulumi.ComponentResourceOptions) {
    super("tiltyard:infra:GkeApis", name, {}, options);
    const { project, catalog, encryptionKey } = config;
    const enable = (service: string, ...dependsOn: pulumi.Resource[]) =>
      new gcp.projects.Service(
        `${name}-${service.split(".")[0]}`,
        { project, service, disableOnDestroy: false },
        { parent: this, dependsOn },
      );
    const manager = enable(first);
    const wanted = [
      ...always,
      ...(createsDatabase(catalog) ? forDatabase : []),
      ...(encryptionKey !== undefined ? ["cloudkms"] : []),
    ];
    const others = wanted.map((service) => enable(`${service}.googleapis.com`, manager));
    this.project = pulumi.all([manager, ...others].map(({ id }) => id)).apply(() => project);
    this.registerOutputs();
  }
}
