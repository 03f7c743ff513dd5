"""The refresh of a LanceDB Function on local tables with its child process, without a catalog and without Ray."""

import lance
import pyarrow as pa
import pytest
from tiltyard.job import function_refresh
from tiltyard.job.function_child import MODULE, Start
from tiltyard.job.function_process import schema_text
from tiltyard.job.function_refresh import Columns, Refresh
from tiltyard.job.function_state import Record
from tiltyard.job.function_worker import FunctionSpec, Part, Worker
from tiltyard.job.job import JobError

NUMBER = pa.field("value", pa.float64(), nullable=False)


class OneWorker:
    """A pool with one worker in this process."""

    slots = 2
    is_busy = False

    def __init__(self, worker: Worker) -> None:
        self.worker = worker
        self.parts: list[int] = []
        # Runs before the next part is returned.
        self.meanwhile = None

    @property
    def is_idle(self) -> bool:
        return not self.is_busy

    def submit(self, version, pieces) -> None:
        self.is_busy = True
        self.request = (version, pieces)
        self.parts.append(sum(len(each.positions) for each in pieces))

    def next(self) -> Part:
        self.is_busy = False
        part = self.worker.compute(*self.request)
        if self.meanwhile is not None:
            meanwhile, self.meanwhile = self.meanwhile, None
            meanwhile()
        return part

    def grow(self, workers: int) -> None: ...


class Table:
    """A table with a function whose calls are counted."""

    def __init__(
        self, folder, source: str, field=NUMBER, outputs=None, rows=None, inputs=None, stable_ids=False, **columns
    ) -> None:
        self.path = str(folder / "table")
        self.calls = folder / "calls"
        self.outputs = outputs or {"d": "$value"}
        self.inputs = inputs or {"value": "x"}
        given = rows or {"id": range(100), "x": [float(number) for number in range(100)]}
        lance.write_dataset(pa.table(given), self.path, max_rows_per_file=20, enable_stable_row_ids=stable_ids)
        columns = columns or {"d": NUMBER.type}
        self.dataset.add_columns(pa.schema([pa.field(name, kind) for name, kind in columns.items()]))
        counted = f"def call(value):\n    with open({str(self.calls)!r}, 'a') as file: print(value, file=file)\n"
        files = {f"{MODULE}.py": counted + source}
        start = Start("f version 1", "f", files, list(self.inputs), {}, schema_text(pa.schema([field])))
        sql = {parameter: f"`{path}`" for parameter, path in self.inputs.items()}
        spec = FunctionSpec(start, {}, sql, list(self.inputs))
        self.worker = Worker(spec, lambda version: lance.dataset(self.path, version))
        self.records: dict[int, Record] = {}
        self.errors: list[dict] = []
        self.versions: list[int] = []

    @property
    def dataset(self):
        return lance.dataset(self.path)

    def record(self, version, records, removed, errors) -> None:
        self.versions.append(version)
        self.records = {key: each for key, each in {**self.records, **records}.items() if key not in removed}
        self.errors += errors

    def refresh(self, meanwhile=None, rows_of_job=0) -> dict[str, int]:
        self.pool = OneWorker(self.worker)
        self.pool.meanwhile = meanwhile
        self.progress = []
        columns = Columns(list(self.inputs.values()), self.outputs)
        report = lambda *rows: self.progress.append(rows)  # noqa: E731
        refresh = Refresh(columns, lambda: self.dataset, self.pool, self.record, report)
        return refresh.run(self.records, rows_of_job)

    def counts(self) -> tuple[int, int]:
        """Returns the numbers of assigned and of failed rows of a refresh."""
        result = self.refresh()
        return result["rows_assigned"], result["rows_failed"]

    def values(self, column: str = "d") -> list:
        return self.dataset.to_table().sort_by("id")[column].to_pylist()

    def count_calls(self) -> int:
        return len(self.calls.read_text().splitlines())


def commit_each_part(monkeypatch) -> None:
    """Limits parts to 10 rows, each with its own commit."""
    for limit in ("COMMIT_SECONDS_MIN", "COMMIT_SECONDS_MAX", "COMMIT_FACTOR"):
        monkeypatch.setattr(function_refresh, limit, 0)
    monkeypatch.setattr(function_refresh, "GROWTH_MAX", 1)


@pytest.fixture
def make(tmp_path, monkeypatch):
    # Refreshes commit once, at their end, regardless of the speed of this machine.
    monkeypatch.setattr(function_refresh, "COMMIT_SECONDS_MIN", 600)
    made = []

    def table(source: str, **others) -> Table:
        folder = tmp_path / str(len(made))
        folder.mkdir()
        made.append(Table(folder, source, **others))
        return made[-1]

    yield table
    for each in made:
        each.worker.close()


DOUBLE = "def f(value):\n    call(value)\n    return value * 2\n"


def test_a_part_of_large_rows_has_few_of_them(make, monkeypatch):
    monkeypatch.setattr(function_refresh, "PART_BYTES_MAX", 5_000)
    rows = {"id": range(100), "x": ["x" * 1_000] * 100}
    table = make("def f(value):\n    return float(len(value))\n", rows=rows)
    assert table.counts() == (100, 0)
    first, *others = table.pool.parts
    assert (first, max(others)) == (10, 4)


@pytest.mark.parametrize("stable_ids", [False, True])
def test_only_rows_without_a_current_value_are_computed(make, stable_ids):
    table = make(DOUBLE, stable_ids=stable_ids)
    table.dataset.delete("id = 3")
    source = table.dataset.version
    result = table.refresh()
    counts = {"rows_assigned": 99, "rows_failed": 0, "rows_remaining": 0}
    assert result == {**counts, "source_version": source, "published_version": source + 1}
    assert table.values() == [2.0 * number for number in range(100) if number != 3]
    # The first part is small, and the rows of several fragments share a commit.
    assert (table.pool.parts[0], table.progress[-1], table.versions) == (10, (99, 99), [source + 1])
    assert "published_version" not in table.refresh()
    assert (table.counts(), table.count_calls()) == ((0, 0), 99)
    table.dataset.insert(pa.table({"id": [100, 101], "x": [100.0, 101.0]}))
    table.dataset.merge_insert("id").when_matched_update_all().execute(pa.table({"id": [7], "x": [70.0]}))
    assert (table.counts(), table.count_calls()) == ((3, 0), 102)
    table.dataset.optimize.compact_files()
    assert (table.counts(), table.count_calls()) == ((0, 0), 102)
    # After the compaction, the output shares a file with other columns.
    table.dataset.insert(pa.table({"id": [102], "x": [102.0]}))
    assert (table.counts(), table.count_calls()) == ((1, 0), 103)
    numbers = [70 if number == 7 else number for number in range(103) if number != 3]
    assert table.values() == [2.0 * number for number in numbers]
    assert len(table.records) == len(table.dataset.get_fragments())


def test_failed_rows_stay_null_and_are_tried_again(make, tmp_path):
    ready = str(tmp_path / "ready")
    source = f'''
import os
def f(value):
    call(value)
    if value % 50 == 7 and not os.path.exists({ready!r}): raise LookupError(f"no {{value}}")
    return value
'''
    table = make(source)
    assert table.counts() == (98, 2)
    error = {"fragment_id": 0, "row": 7, "type": "builtins.LookupError", "message": "no 7.0"}
    assert table.errors == [error, {**error, "fragment_id": 2, "row": 17, "message": "no 57.0"}]
    assert [number for number, value in enumerate(table.values()) if value is None] == [7, 57]
    version = table.dataset.version
    # Rows that fail again end no refresh, and nothing is committed for them.
    assert (table.counts(), table.dataset.version, table.count_calls()) == ((0, 2), version, 102)
    (tmp_path / "ready").touch()
    assert (table.counts(), table.counts(), table.values()[7]) == ((2, 0), (0, 0), 7.0)


def test_a_failed_row_loses_its_outdated_value(make):
    table = make("def f(value):\n    return None if value == 500 else value\n")
    table.refresh()
    table.dataset.update({"x": "500.0"}, where="id = 7")
    table.dataset.insert(pa.table({"id": range(100, 130), "x": [1.0] * 30}))
    assert (table.counts(), table.values()[7]) == ((30, 1), None)


def test_rows_with_a_null_input_are_not_computed(make):
    numbers = [None if number % 2 else float(number) for number in range(100)]
    table = make(DOUBLE, rows={"id": range(100), "x": numbers})
    result = table.refresh()
    assert (result["rows_assigned"], result["rows_failed"], result["rows_remaining"]) == (50, 0, 50)
    assert table.values() == [None if number is None else number * 2 for number in numbers]
    assert (table.counts(), table.count_calls()) == ((0, 0), 50)


def test_siblings_get_the_fields_of_one_call(make):
    kind = pa.struct([pa.field("upper", pa.string()), pa.field("vector", pa.list_(pa.float32(), 2))])
    source = "def f(value):\n    call(value)\n    return {'upper': f'X{value}', 'vector': [value, 1.0]}\n"
    outputs = {"shout": "upper", "vector": "vector"}
    table = make(
        source,
        field=pa.field("value", kind, nullable=False),
        outputs=outputs,
        shout=pa.string(),
        vector=pa.list_(pa.float32(), 2),
    )
    assert (table.counts(), table.counts(), table.count_calls()) == ((100, 0), (0, 0), 100)
    assert (table.values("shout")[3], table.values("vector")[3]) == ("X3.0", [3.0, 1.0])


def test_a_struct_is_one_column_and_an_input_may_be_a_field(make):
    kind = pa.struct([pa.field("twice", pa.int64()), pa.field("text", pa.list_(pa.string()))])
    rows = {"id": range(100), "a b": [{"n": number} for number in range(100)]}
    source = "def f(value):\n    return {'twice': 2 * value['n'], 'text': [str(value)]}\n"
    field = pa.field("value", kind, nullable=False)
    table = make(source, field=field, rows=rows, inputs={"value": "a b"}, d=kind)
    assert (table.counts(), table.counts()) == ((100, 0), (0, 0))
    assert table.values()[3] == {"twice": 6, "text": ["{'n': 3}"]}


def test_concurrent_appends_deletions_and_updates_lose_no_row(make):
    table = make(DOUBLE)

    def change() -> None:
        table.dataset.insert(pa.table({"id": [100], "x": [100.0]}))
        table.dataset.delete("id = 3")
        table.dataset.update({"x": "500.0"}, where="id = 7")

    assert table.refresh(change)["rows_assigned"] == 100
    # The moved row has a value of its former input, or none, until the next refresh.
    assert (table.counts(), table.counts(), table.count_calls()) == ((2, 0), (0, 0), 102)
    numbers = [500 if number == 7 else number for number in range(101) if number != 3]
    assert table.values() == [2.0 * number for number in numbers]


def test_a_concurrent_change_of_the_inputs_is_computed_again(make):
    table = make(DOUBLE)

    def change() -> None:
        dataset = table.dataset
        right = pa.table({"id": [3], "x": [30.0]})
        changed, fields = dataset.get_fragment(0).update_columns(right, "id")
        update = lance.LanceOperation.Update(updated_fragments=[changed], fields_modified=fields)
        lance.LanceDataset.commit(dataset, update, read_version=dataset.version)

    result = table.refresh(change)
    assert (result["rows_assigned"], result["rows_remaining"]) == (100, 0)
    assert table.values()[3] == 60.0
    assert (table.counts(), table.count_calls()) == ((0, 0), 120)


def test_a_concurrent_compaction_keeps_committed_rows(make, monkeypatch):
    commit_each_part(monkeypatch)
    table = make(DOUBLE)
    table.refresh(lambda: table.dataset.optimize.compact_files())
    # Only the part that the compaction outran was called twice.
    assert (table.values(), table.count_calls()) == ([2.0 * number for number in range(100)], 110)


@pytest.mark.parametrize("when", ["before", "during"])
def test_former_values_that_a_restore_brings_back_are_computed_again(make, when):
    table = make(DOUBLE)
    table.refresh()
    # The changed rows move to a new fragment together with their former values.
    table.dataset.update({"x": "x + 1000"}, where="id < 10")
    outdated = table.dataset.version
    table.refresh()
    table.dataset.insert(pa.table({"id": [100], "x": [100.0]}))
    restore = lance.dataset(table.path, outdated).restore
    if when == "before":
        restore()
        assert table.counts() == (10, 0)
    else:
        table.refresh(restore)
    assert table.values() == [2.0 * (number + 1000 if number < 10 else number) for number in range(100)]
    assert table.counts() == (0, 0)


def test_a_worker_gives_secrets_to_its_function_and_redacts_them(make):
    source = "import os\ndef f(value):\n    token = os.environ['TOKEN']\n    if value == 7: raise ValueError(token)\n"
    table = make(source + "    return value * len(token)\n")
    table.worker.receive_secrets(("TOKEN", "value-of-the-token"))
    assert table.counts() == (99, 1)
    assert table.values()[:9] == [0.0, 18.0, 36.0, 54.0, 72.0, 90.0, 108.0, None, 144.0]
    assert [each["message"] for each in table.errors] == ["***"]


def test_an_interrupted_refresh_repeats_only_uncommitted_parts(make, monkeypatch):
    commit_each_part(monkeypatch)
    table = make("def f(value):\n    call(value)\n    return 'text' if value == 45 else value\n")
    with pytest.raises(JobError, match="f version 1 returned 'text' of the type str"):
        table.refresh()
    assert (table.values()[:40], table.values()[40]) == ([float(number) for number in range(40)], None)
    table.dataset.update({"x": "0.0"}, where="id = 45")
    table.worker.close()
    table.worker = Worker(table.worker._spec, lambda version: lance.dataset(table.path, version))
    # The next attempt at the same job counts the rows of the former one, too.
    assert table.refresh(rows_of_job=100).items() >= {"rows_assigned": 100, "rows_remaining": 0}.items()
    assert table.count_calls() == 50 + 60


ENDING = '''
import os, signal
def f(value):
    call(value)
    if ENDS and (ALWAYS or not os.path.exists(MARK)):
        open(MARK, "w").close()
        END
    return value * 2
'''


def ending(tmp_path, end: str, ends: str = "value == 45", always: bool = False) -> str:
    """Returns the source of a function whose process ends at some rows, each time or once."""
    mark = repr(str(tmp_path / "ended"))
    return ENDING.replace("ENDS", ends).replace("ALWAYS", str(always)).replace("MARK", mark).replace("END", end)


KILL = "os.kill(os.getpid(), signal.SIGKILL)"


def test_another_process_of_a_function_computes_the_rows_of_a_killed_one(make, tmp_path, monkeypatch):
    commit_each_part(monkeypatch)
    table = make(ending(tmp_path, KILL))
    assert table.counts() == (100, 0)
    assert (table.values(), table.count_calls()) == ([2.0 * number for number in range(100)], 106)


@pytest.mark.parametrize(
    ("end", "told"),
    [
        (KILL, "was killed by the signal SIGKILL: is the memory of the worker exhausted?"),
        ("os.abort()", "was killed by the signal SIGABRT"),
        ("os._exit(7)", "exited with code 7"),
    ],
)
def test_a_row_that_ends_each_process_fails_alone(make, tmp_path, end, told):
    table = make(ending(tmp_path, end, ends="value in (45, 46)", always=True))
    assert table.counts() == (98, 2)
    assert table.values() == [None if number in (45, 46) else 2.0 * number for number in range(100)]
    assert [(each["type"], told in each["message"]) for each in table.errors] == [("tiltyard.ProcessEnded", True)] * 2


def test_a_function_that_ends_most_processes_fails_its_refresh(make, tmp_path):
    table = make(ending(tmp_path, "os._exit(7)", ends="True", always=True))
    with pytest.raises(JobError, match="the process of f version 1 exited with code 7"):
        table.refresh()
    # A part has few rows at first. The refresh ends at the fourth of its rows that ended three processes.
    assert table.count_calls() < 30


def test_a_refresh_with_many_failed_rows_fails(make):
    source = "def f(value):\n    if value % 10 == 0: raise LookupError(f'no {value}')\n    return value\n"
    table = make(source)
    for _ in range(2):
        with pytest.raises(JobError, match="10 of 100 rows failed, more than 5%: builtins.LookupError: no 0.0"):
            table.refresh()
    assert [number for number, value in enumerate(table.values()) if value is None] == list(range(0, 100, 10))
    # Appended rows that all fail are few among all rows, but all of the new ones.
    table = make("def f(value):\n    if value >= 100: raise LookupError('new')\n    return value\n")
    table.refresh()
    table.dataset.insert(pa.table({"id": [100], "x": [100.0]}))
    with pytest.raises(JobError, match="1 of 1 rows failed, more than 5%: builtins.LookupError: new"):
        table.refresh()


def test_many_errors_end_a_refresh_early(make):
    rows = {"id": range(5_000), "x": [1.0] * 5_000}
    table = make("def f(value):\n    call(value)\n    raise ValueError('bad value')\n", rows=rows)
    with pytest.raises(JobError, match="rows failed, more than 5%: builtins.ValueError: bad value"):
        table.refresh()
    assert table.count_calls() < 5_000
    # The errors are recorded although the refresh failed.
    assert len(table.errors) == table.count_calls()


def test_a_missing_column_is_an_error_in_a_sentence(make):
    table = make(DOUBLE)
    table.dataset.drop_columns(["x"])
    with pytest.raises(JobError, match="the column x does not exist"):
        table.refresh()
