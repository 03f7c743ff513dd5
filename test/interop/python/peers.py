"""Compares calls of lancedb through the catalog with the same calls on local tables."""

import itertools
import re
from dataclasses import dataclass, field
from typing import Any, Callable

import lance
import lancedb
import pandas
import pyarrow as pa
from lancedb.background_loop import LOOP

numbers = itertools.count(1)
# The kinds of errors, and the messages by which clients report them.
KINDS = {
    "exists": r"already",
    "missing": r"not found|does not exist|no longer exists|No field named|has no |not exist",
    "unsupported": r"^$",
    "refused": r"",
    "panic": r"^$",
}


@dataclass
class Peer:
    """A database of lancedb, whose tables pylance reads as well."""

    db: lancedb.DBConnection
    # The arguments of pylance for a table.
    address: Callable[[str], dict[str, Any]]
    where: dict[str, Any] = field(default_factory=dict)

    def write(self, rows: pa.Table):
        """Opens a new table that pylance has written."""
        name = f"table{next(numbers)}"
        lance.write_dataset(rows, **self.address(name))
        return self.db.open_table(name, **self.where)

    def create(self, rows: pa.Table | None = None, **options):
        """Creates a table with a new name."""
        return self.db.create_table(f"table{next(numbers)}", rows, **options, **self.where)

    def dataset(self, name: str) -> lance.LanceDataset:
        return lance.dataset(**self.address(name))

    def content(self, name: str):
        """Returns the latest version of a table as pylance reads it."""
        dataset = self.dataset(name)
        indices = sorted((index.name, index.index_type) for index in dataset.describe_indices())
        return plain([dataset.version, indices, dataset.to_table()])


def connect(catalog, namespace: str, folder) -> list[Peer]:
    """Returns a local database, and a namespace of the catalog by the native and by the remote client."""

    def address(name: str):
        return {"namespace_client": catalog.client(), "table_id": [namespace, name]}

    where = {"namespace_path": [namespace]}
    remote = lancedb.connect("db://films", api_key=catalog.key, host_override=catalog.url)
    return [
        Peer(lancedb.connect(folder), lambda name: {"uri": str(folder / f"{name}.lance")}),
        Peer(lancedb.connect_namespace("rest", catalog.properties), address, where),
        Peer(remote, address, where),
    ]


def observe(call: Callable[[], Any]) -> Any:
    """Returns the result of a call in a form that can be compared, or the kind of its error."""
    try:
        return repr(plain(call()))
    except KeyboardInterrupt:
        raise
    # A panic of Rust is no Exception.
    except BaseException as error:
        return kind_of(error)


def kind_of(error: BaseException) -> str:
    if not isinstance(error, Exception):
        return "panic"
    message = str(error)
    status = re.search(r'"status":(\d+)', message)
    if status and status[1].startswith("5"):
        return f"error {message}"
    if isinstance(error, (AttributeError, NotImplementedError)) or status and status[1] == "406":
        return "unsupported"
    return next(kind for kind, messages in KINDS.items() if re.search(messages, message, re.IGNORECASE))


def plain(value: Any) -> Any:
    """Converts a result to values that can be compared and printed, without names, paths, sizes and times."""
    if hasattr(value, "__await__"):
        return plain(LOOP.run(value))
    if isinstance(value, (str, int, float, bool, bytes, type(None))):
        return value
    if isinstance(value, pa.Schema):
        return [[plain(field) for field in value], sorted((value.metadata or {}).items())]
    if isinstance(value, pa.Field):
        return [value.name, str(value.type), value.nullable, sorted((value.metadata or {}).items())]
    if isinstance(value, pa.RecordBatchReader):
        return plain(value.read_all())
    if isinstance(value, pa.Table):
        columns = value.combine_chunks().columns
        return [plain(value.schema), *(each.chunk(0).to_string(window=len(value)) if len(value) else "" for each in columns)]
    if isinstance(value, pandas.DataFrame):
        return [str(value.dtypes), plain(value.to_dict("records"))]
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if hasattr(value, "model_dump"):
        return plain(value.model_dump())
    if isinstance(value, dict):
        return {key: plain(each) for key, each in sorted(value.items()) if key not in UNEQUAL}
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    if not re.match(r"builtins$|lancedb", type(value).__module__):
        return repr(value)
    fields = {name: getattr(value, name) for name in dir(value) if not name.startswith("_")}
    return {"type": type(value).__name__, **plain({k: v for k, v in fields.items() if not callable(v)})}


UNEQUAL = ["timestamp", "manifest_size", "created_at", "createdAt", "create_at", "index_uuid", "size_bytes", "total_bytes"]
