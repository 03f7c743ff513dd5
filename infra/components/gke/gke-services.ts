import * as gcp from "@pulumi/gcp";
import * as pulumi from "@pulumi/pulumi";
import type { GkeConfig } from "../../config.ts";

/** The provider reads the project by it each time that it looks at a service. */
const first = "cloudresourcemanager.googleapis.com";

/** What every stack on GKE calls: `containerfilesystem` streams images, `iamcredentials` lets clients become an account. */
const always = ["artifactregistry", "compute", "container", "containerfilesystem", "iam", "iamcredentials", "storage"];

const forDatabase = ["servicenetworking", "sqladmin"];

type GkeServicesConfig = Pick<GkeConfig, "project" | "encryptionKey"> & {
  readonly catalog: Pick<GkeConfig["catalog"], "enabled" | "database">;
};

/**
 * Turns on the services of Google that the stack calls. They stay on when the stack goes:
 * something else in the project may have come to use them.
 */
export class GkeServices extends pulumi.ComponentResource {
  /** The id of the project, known when its services are on: what is made with it waits for them. */
  readonly project: pulumi.Output<string>;

  constructor(name: string, config: GkeServicesConfig, options?: pulumi.ComponentResourceOptions) {
    super("tiltyard:infra:GkeServices", name, {}, options);
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
      ...(catalog.enabled && catalog.database === "postgres" ? forDatabase : []),
      ...(encryptionKey !== undefined ? ["cloudkms"] : []),
    ];
    const others = wanted.map((service) => enable(`${service}.googleapis.com`, manager));
    this.project = pulumi.all([manager, ...others].map(({ id }) => id)).apply(() => project);
    this.registerOutputs();
  }
}
