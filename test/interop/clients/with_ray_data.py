import lance.namespace
import ray
from arrow_rows import rows
from lance_namespace import DescribeTableRequest
from operations import KEY, TABLE, URL, serve

ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
PROPERTIES = {"uri": URL, "header.x-api-key": KEY}


def location() -> str:
    catalog = lance.namespace.RestNamespace(**PROPERTIES)
    return catalog.describe_table(DescribeTableRequest(id=TABLE)).location


def write(mode: str, *numbers: int) -> None:
    ray.data.from_arrow(rows(*numbers)).write_lance(location(), mode=mode)


def create() -> None:
    ray.data.from_arrow(rows(1, 2, 3)).write_lance(
        "where the catalog says", mode="create", table_id=TABLE, namespace_impl="rest", namespace_properties=PROPERTIES
    )


serve(
    create=create,
    append=lambda: write("append", 4),
    read=lambda: sorted(film["id"] for film in ray.data.read_lance(location()).take_all()),
    version=lambda: sorted(film["id"] for film in ray.data.read_lance(location(), version=1).take_all()),
    overwrite=lambda: write("overwrite", 1, 2),
)
