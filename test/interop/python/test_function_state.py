"""The rows that a LanceDB Function has to compute, on local tables without a catalog and without Ray."""

from collections import Counter
from datetime import timedelta

import lance
import pyarrow as pa
import pytest
from jobs import write_films
from tiltyard.job.function_job import Recorder
from tiltyard.job.function_state import Fields, Record, current_records, field_ids, work_of
from tiltyard.job.job import Job

ROWS = 20
INPUTS = ["x", "s.a"]


class Table:
    """A table of two fragments with the filled output `d`, and the records of the catalog about it."""

    def __init__(self, path: str) -> None:
        self.path = path
        rows = pa.table(
            {
                "id": range(ROWS),
                "x": [float(number) for number in range(ROWS)],
                "s": [{"a": number, "b": number} for number in range(ROWS)],
                "d": [2.0 * number for number in range(ROWS)],
            }
        )
        lance.write_dataset(rows, path, max_rows_per_file=ROWS // 2)
        self.records: dict[int, Record] = {}
        self.record()

    @property
    def dataset(self):
        return lance.dataset(self.path)

    @property
    def fields(self):
        return Fields(field_ids(self.dataset, INPUTS), field_ids(self.dataset, ["d"]))

    def record(self, rows: int | None = None) -> None:
        """Records all fragments as computed, or some rows of each."""
        self.records = {
            each.fragment_id: Record(
                self.fields.files_of(each.metadata).signature, each.physical_rows if rows is None else rows
            )
            for each in self.dataset.get_fragments()
        }

    def work(self) -> list[int]:
        """Returns the ids of the rows to compute."""
        dataset = self.dataset
        records = current_records(dataset, self.fields, self.records)
        found = []
        for work in work_of(dataset, self.fields, ["d"], records):
            fragment = dataset.get_fragment(work.fragment_id)
            found += fragment.take([*work.failed, *work.missing], columns=["id"])["id"].to_pylist()
        return sorted(found)

    def put(self, column: str, ids, values) -> None:
        """Replaces values of a column in its fragments, without moving rows."""
        dataset = self.dataset
        right = pa.table({"id": ids, column: pa.array(values, pa.float64())})
        changed = [each.update_columns(right, "id") for each in dataset.get_fragments()]
        update = lance.LanceOperation.Update(
            updated_fragments=[metadata for metadata, _ in changed], fields_modified=changed[0][1]
        )
        lance.LanceDataset.commit(dataset, update, read_version=dataset.version)

    def upsert(self, *ids: int) -> None:
        rows = pa.table({"id": ids, "x": [100.0 for _ in ids]})
        self.dataset.merge_insert("id").when_matched_update_all().execute(rows)


@pytest.fixture
def table(tmp_path):
    return Table(str(tmp_path / "table"))


def test_every_row_of_a_table_without_records_is_computed(table):
    table.records = {}
    assert table.work() == list(range(ROWS))


def test_no_row_is_computed_again(table):
    assert table.work() == []


def test_an_interrupted_refresh_continues_behind_its_rows(table):
    table.record(rows=4)
    assert table.work() == [*range(4, 10), *range(14, 20)]
    table.dataset.delete("id IN (1, 12, 19)")
    assert table.work() == [*range(4, 10), *range(14, 19)]


def test_rows_without_a_value_are_computed_again(table):
    table.put("d", [3, 17], [None, None])
    table.record()
    assert table.work() == [3, 17]
    table.dataset.delete("id IN (1, 5)")
    assert table.work() == [3, 17]


def test_appended_and_changed_rows_are_computed(table):
    table.dataset.insert(pa.table({"id": [20], "x": [20.0]}))
    table.upsert(7)
    table.dataset.update({"x": "500.0"}, where="id = 12")
    table.dataset.delete("id = 4")
    assert table.work() == [7, 12, 20]


def test_values_of_other_columns_make_no_row_stale(table):
    table.dataset.add_columns({"other": "x + 1"})
    table.put("other", [1], [5.0])
    assert table.work() == []


def test_values_that_another_writer_put_into_the_output_are_computed_again(table):
    table.put("d", [1], [5.0])
    assert table.work() == list(range(ROWS))


def test_former_values_of_changed_rows_that_a_restore_brought_back_are_computed_again(table):
    table.dataset.update({"x": "500.0"}, where="id = 12")
    outdated = table.dataset.version
    table.put("d", [12], [1000.0])
    table.record()
    assert table.work() == []
    lance.dataset(table.path, outdated).restore()
    assert 12 in table.work()


def test_an_input_that_changed_in_place_makes_its_fragments_stale(table):
    table.put("x", [3], [5.0])
    assert table.work() == list(range(ROWS))


def test_compactions_of_computed_fragments_are_followed(table):
    table.dataset.delete("id = 4")
    table.dataset.optimize.compact_files()
    assert (len(table.dataset.get_fragments()), table.work()) == (1, [])
    table.dataset.insert(pa.table({"id": [20], "x": [20.0]}))
    table.upsert(7)
    table.dataset.optimize.compact_files()
    assert len(table.dataset.get_fragments()) == 1
    # The rows before the first uncomputed one are known, those behind it count as new.
    assert table.work() == [7, 20]


def test_compactions_of_tables_with_an_index_are_followed(table):
    table.dataset.create_scalar_index("x", "BTREE")
    table.dataset.optimize.compact_files()
    assert (len(table.dataset.get_fragments()), table.work()) == (1, [])


def test_a_compaction_keeps_the_rows_before_the_first_uncomputed_one(table):
    table.upsert(2)
    table.dataset.insert(pa.table({"id": range(20, 30), "x": [float(number) for number in range(20, 30)]}))
    assert table.work() == [2, *range(20, 30)]
    table.dataset.optimize.compact_files(target_rows_per_fragment=12)
    assert table.work() == [2, *range(20, 30)]


def test_a_compaction_of_stale_fragments_computes_their_rows(table):
    table.put("x", [3], [5.0])
    table.dataset.optimize.compact_files()
    assert table.work() == list(range(ROWS))


def test_a_compaction_whose_version_was_deleted_computes_all_its_rows(table):
    table.dataset.optimize.compact_files()
    table.dataset.insert(pa.table({"id": [20], "x": [20.0]}))
    table.dataset.cleanup_old_versions(older_than=timedelta(0))
    assert table.work() == list(range(ROWS + 1))


def test_a_fragment_of_another_table_has_no_record(table):
    rows = table.dataset.to_table()
    lance.write_dataset(rows, table.path, mode="overwrite", max_rows_per_file=ROWS)
    assert table.work() == list(range(ROWS))


def test_fragments_that_a_restore_removed_have_no_record(catalog, namespace):
    films = write_films(catalog, [namespace, "films"])

    def opened():
        return lance.dataset(namespace_client=catalog.client(), table_id=films)

    dataset = opened()
    records = {each.fragment_id: Record("any", each.physical_rows) for each in dataset.get_fragments()}
    lance.dataset(namespace_client=catalog.client(), table_id=films, version=dataset.version).restore()
    assert current_records(opened(), Fields([0], [1]), {**records, 99: Record("any", 1)}) == records


def test_a_missing_input_is_an_error(table):
    with pytest.raises(KeyError, match="no_such_column"):
        field_ids(table.dataset, ["x", "no_such_column"])


def test_some_errors_of_each_fragment_are_recorded_and_all_are_counted():
    class Requests:
        def __init__(self):
            self.errors, self.failed = Counter(), {}

        def record_function(self, request):
            assert len(request.get("errors", [])) <= 100
            self.errors.update(each["fragment_id"] for each in request.get("errors", []))
            self.failed.update({each["fragment_id"]: each["rows"] for each in request.get("failed", [])})

    requests = Requests()
    recorder = Recorder(Job("a", "", ["a"], {}, None, 0, 1, "claim"), requests)
    for _ in range(2):
        errors = [{"fragment_id": number % 20, "row": number, "type": "T", "message": ""} for number in range(3_000)]
        recorder(1, {}, [], errors)
    assert requests.failed == dict.fromkeys(range(20), 300)
    assert max(requests.errors.values()) <= 100
    assert requests.errors.total() == 1_000
