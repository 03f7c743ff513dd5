"""A Pulumi program in Python that deploys Ray, the catalog and its runner.

    npm install @tiltyard/infra
    pulumi package add ./node_modules/@tiltyard/infra   # a typed library, pulumi_tiltyard
    pulumi config set bucket s3://tables/lance
    pulumi config set --secret kubeconfig < kubeconfig.yaml

This program does without the typed library, and so runs as it is.
"""

import pulumi


class Platform(pulumi.ComponentResource):
    """The component of the plugin: its arguments are settings of a stack, its properties outputs of one."""

    bucketUri: pulumi.Output[str]
    catalogUrl: pulumi.Output[str]
    catalogApiKey: pulumi.Output[str]

    def __init__(self, name: str, settings: dict, opts: pulumi.ResourceOptions | None = None) -> None:
        outputs = {"bucketUri": None, "catalogUrl": None, "catalogApiKey": None}
        super().__init__("tiltyard:index:Platform", name, {**outputs, **settings}, opts, remote=True)


config = pulumi.Config()
platform = Platform(
    "yard",
    {
        "kubeconfig": config.require_secret("kubeconfig"),
        "bucket": config.require("bucket"),
        "namespace": "features",
        "serviceAccount": "features-ray",
        "clientPrincipals": ["group:ml-engineers"],
        "quota": {"cpu": "64", "memory": "256Gi"},
        "catalog": {"image": "registry.example.com/tiltyard-catalog:0.1.0"},
        "runner": {"maxJobs": 4},
    },
)

pulumi.export("catalogUrl", platform.catalogUrl)
pulumi.export("catalogApiKey", platform.catalogApiKey)
