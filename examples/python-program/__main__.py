"""A Pulumi program in Python that deploys Ray, the catalog and its runner.

    npm install @tiltyard/infra
    pulumi package add ./node_modules/@tiltyard/infra   # a typed library, pulumi_tiltyard
    pulumi config set bucket s3://tables/lance
    pulumi config set --secret kubeconfig < kubeconfig.yaml

This program does without the typed library, and so runs as it is.
"""

import pulumi


class RayPlatform(pulumi.ComponentResource):
    """Namespaces for Ray clusters and the KubeRay operator. The arguments are settings of a stack."""

    namespace: pulumi.Output[str]

    def __init__(self, name: str, settings: dict) -> None:
        super().__init__("tiltyard:index:RayPlatform", name, {"namespace": None, **settings}, remote=True)


class Catalog(pulumi.ComponentResource):
    """The catalog of a platform. The arguments are the settings `catalog` of a stack."""

    url: pulumi.Output[str]
    apiKey: pulumi.Output[str]

    def __init__(self, name: str, settings: dict) -> None:
        super().__init__("tiltyard:index:Catalog", name, {"url": None, "apiKey": None, **settings}, remote=True)


class Runner(pulumi.ComponentResource):
    """The runner of a catalog's jobs. The arguments are the settings `runner` of a stack."""

    rayClusters: pulumi.Output[list[str]]

    def __init__(self, name: str, settings: dict) -> None:
        super().__init__("tiltyard:index:Runner", name, {"rayClusters": None, **settings}, remote=True)


config = pulumi.Config()
ray = RayPlatform(
    "ray",
    {
        "kubeconfig": config.require_secret("kubeconfig"),
        "bucket": config.require("bucket"),
        "namespace": "features",
        "serviceAccount": "features-ray",
        "clientPrincipals": ["group:ml-engineers"],
        "quota": {"cpu": "64", "memory": "256Gi"},
    },
)
catalog = Catalog("catalog", {"platform": ray, "image": "registry.example.com/tiltyard-catalog:0.1.0"})
runner = Runner("runner", {"platform": ray, "catalog": catalog, "maxJobs": 4})

pulumi.export("catalogUrl", catalog.url)
pulumi.export("catalogApiKey", catalog.apiKey)
pulumi.export("rayClusters", runner.rayClusters)
