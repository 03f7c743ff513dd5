"""Every option of every index that lancedb configures."""

import dataclasses

import lancedb.index
import pyarrow as pa
from peers import KINDS, observe

CONFIGS = {name: each for name, each in vars(lancedb.index).items() if dataclasses.is_dataclass(each)}
COLUMNS = {"BTree": "id", "Bitmap": "genre", "LabelList": "tags", "Fm": "title", "FTS": "title"}
# The values of options that differ from their defaults.
VALUES = {
    "distance_type": ["cosine", "dot", "hamming"],
    "num_partitions": [3],
    "num_sub_vectors": [2],
    "num_bits": [4],
    "max_iterations": [7],
    "sample_rate": [64],
    "m": [8],
    "ef_construction": [40],
    "target_partition_size": [100],
    "accelerator": ["cuda"],
    "with_position": [True],
    "base_tokenizer": ["whitespace", "raw", "ngram", "icu", "icu/split"],
    "language": ["French", "Klingon"],
    "max_token_length": [4, None],
    "lower_case": [False],
    "stem": [False],
    "remove_stop_words": [False],
    "ascii_folding": [False],
    "ngram_min_length": [2],
    "ngram_max_length": [4],
    "prefix_only": [True],
    "block_size": [256],
    "custom_stop_words": [["quick"]],
    "memory_limit": [100],
    "num_workers": [1],
    "document_granularity": [lancedb.index.DocumentGranularity.LIST_ELEMENT],
}


def indexed_table(peer):
    ids = range(300)
    rows = {
        "id": list(ids),
        "genre": [f"genre {number % 3}" for number in ids],
        "title": [f"Les chats {number} quick été" for number in ids],
        "tags": [[f"tag {number % 5}"] for number in ids],
        "vector": pa.array([[number, number % 7, 1, 0] for number in ids], pa.list_(pa.float32(), 4)),
    }
    return peer.create(pa.table(rows))


def compare(peer) -> dict[str, str]:
    """Creates an index of each type with its defaults, and with another value of each option."""
    table = indexed_table(peer)
    outcomes = {}
    for name, config in CONFIGS.items():
        outcomes[name] = observe(lambda: created(peer, table, name, config()))
        # An index that a peer cannot build needs no more than one line.
        if outcomes[name] in KINDS:
            continue
        for option in dataclasses.fields(config):
            for value in VALUES[option.name]:
                changed = config(**{option.name: value})
                outcomes[f"{name}.{option.name}: {value}"] = observe(lambda: created(peer, table, name, changed))
    return outcomes


def created(peer, table, name: str, config):
    """Creates and drops an index. Returns what the client and the files report about it."""
    column = COLUMNS.get(name, "vector")
    table.create_index(column, config=config, name=column)
    stats = peer.dataset(table.name).stats.index_stats(column)["indices"][0]
    inner = {key: each for key, each in stats.get("sub_index", {}).items() if key in STABLE}
    found = next(index for index in table.list_indices() if index.name == column)
    result = [stats.get("num_partitions"), inner, found.index_type, found.columns, found.index_details]
    result.append(table.index_stats(column))
    table.drop_index(column)
    return result


# The other fields depend on random numbers.
STABLE = ["index_type", "metric_type", "nbits", "num_bits", "num_sub_vectors", "params"]
