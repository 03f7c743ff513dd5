"""Stores definitions of Geneva in the catalog: the cluster `big`, for another place than the stack's, and the manifest
`words`. Geneva uploads the working folder with a manifest."""

import os

import geneva
from geneva.cluster.mgr import GenevaCluster
from geneva.manifest.builder import PipManifestBuilder

key, url = os.environ["TILTYARD_API_KEY"], os.environ["TILTYARD_CATALOG_URL"]
db = geneva.connect("db://jobs", api_key=key, host_override=url)
big = GenevaCluster.create_kuberay("big").namespace("elsewhere")
db.define_cluster("big", big.head_group(cpus=1, memory="3Gi", service_account="other").build())
db.define_manifest("words", PipManifestBuilder.create("words").env_vars({"WORD": "variable"}).build())
