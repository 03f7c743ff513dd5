"""The child process that calls a LanceDB Function, without a catalog and without Ray."""

import base64
import json
import os
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from catalog import wait_until
from tiltyard.job.function_child import MODULE, FunctionFailure, Start
from tiltyard.job.function_process import FunctionProcess, schema_text

NUMBER = pa.field("value", pa.float64(), nullable=False)
FEATURES = pa.struct([pa.field("upper", pa.string()), pa.field("size", pa.int64(), nullable=False)])


def start(source: str, field=NUMBER, entrypoint: str = "f", parameters=("value",), **others) -> Start:
    given = {
        "files": {f"{MODULE}.py": f"from __future__ import annotations\n{source}"},
        "initialization": {},
        **others,
    }
    output = schema_text(pa.schema([field]))
    return Start("f version 1", entrypoint=entrypoint, parameters=list(parameters), output=output, **given)


@pytest.fixture
def run():
    '''Starts functions and ends their processes.'''
    running = []

    def started(
        source: str, *args, environment=None, secrets=None, start_seconds_max=600.0, **others
    ) -> FunctionProcess:
        given = start(source, *args, **others)
        process = FunctionProcess(given, environment or {}, start_seconds_max, secrets or {})
        running.append(process)
        return process

    yield started
    for process in running:
        process.close()


def rows(*values, name: str = "value"):
    return pa.record_batch({name: pa.array(values)})


def test_a_function_of_rows_gets_python_values_and_failed_rows_are_null(run):
    source = '''
def f(value: float) -> float:
    if value == 2:
        raise ValueError(f"bad value {value}")
    if value == 3:
        return None
    return value * 2
'''
    values, errors = run(source).compute(rows(1.0, 2.0, 3.0, 4.0))
    assert values.equals(pa.array([2.0, None, None, 8.0]))
    assert errors == [
        {"row": 1, "type": "builtins.ValueError", "message": "bad value 2.0"},
        {"row": 2, "type": "builtins.ValueError", "message": "f version 1 returned None"},
    ]


def test_an_error_that_has_no_text_fails_only_its_row(run):
    source = '''
class Odd(Exception):
    def __str__(self):
        raise ValueError("no text")
def f(value: float) -> float:
    if value == 2:
        raise Odd
    return value
'''
    values, errors = run(source, pa.field("value", pa.float64())).compute(rows(1.0, 2.0))
    assert values.to_pylist() == [1, None]
    assert errors == [{"row": 1, "type": f"{MODULE}.Odd", "message": "its text cannot be shown"}]


def test_a_function_of_arrays_gets_an_array_for_each_parameter(run):
    source = '''
def f(value: pa.Array, other: "pa.Array") -> pa.Array:
    import pyarrow.compute as pc
    if len(value) < 1024:
        raise KeyError("too few")
    return pc.add(value, other)
'''
    numbers = pa.array([float(number) for number in range(1_100)])
    batch = pa.record_batch({"value": numbers, "other": numbers})
    values, errors = run(source, parameters=("value", "other")).compute(batch)
    assert values.slice(0, 1024).equals(pc.multiply(numbers, 2.0).slice(0, 1024))
    assert values.null_count == 76
    assert (len(errors), errors[0]) == (76, {"row": 1_024, "type": "builtins.KeyError", "message": "'too few'"})


def test_a_function_of_a_batch_gets_a_record_batch(run):
    source = '''
def f(value: pyarrow.RecordBatch) -> pyarrow.Array:
    return value.column("value")
'''
    assert run(source).compute(rows(1.0, 2.0))[0].equals(pa.array([1.0, 2.0]))


def test_a_struct_is_a_dictionary_of_its_declared_fields(run):
    source = '''
def f(value):
    return {"upper": None} if value == "" else {"upper": value.upper(), "size": len(value)}
'''
    values, errors = run(source, pa.field("value", FEATURES, nullable=False)).compute(rows("ab", ""))
    assert values.to_pylist() == [{"upper": "AB", "size": 2}, None]
    assert [each["message"] for each in errors] == ["f version 1 returned no value for the field 'size'"]


def test_an_instance_lives_as_long_as_its_process(run, tmp_path):
    source = '''
class scale:
    def __init__(self, factor: float, offset: float = 100.0):
        self.factor, self.offset, self.calls = factor, offset, 0
    def __call__(self, value: float) -> float:
        self.calls += 1
        return value * self.factor + self.offset + self.calls
    def close(self):
        open(PATH, "w").write(f"{self.calls} calls")
'''.replace("PATH", repr(str(tmp_path / "closed")))
    process = run(source, entrypoint="scale", initialization={"factor": 2.0, "offset": None})
    assert process.compute(rows(1.0))[0].to_pylist() == [103.0]
    assert process.compute(rows(1.0))[0].to_pylist() == [104.0]
    process.close()
    assert (tmp_path / "closed").read_text() == "2 calls"


def test_a_bundle_has_its_own_modules(run):
    files = {f"{MODULE}.py": "from parts.math import twice\ndef f(value): return twice(value)"}
    files["parts/math.py"] = "def twice(value): return 2 * value"
    assert run("", files=files).compute(rows(3.0))[0].to_pylist() == [6.0]


def test_a_function_sees_only_its_own_environment_and_folder(run, monkeypatch):
    monkeypatch.setenv("TILTYARD_API_KEY", "secret-of-the-job")
    source = '''
def f(value: str) -> str:
    import os, sys
    os.write(1, b"a program prints this")
    print("printed")
    open("own-file", "w").close()
    files = sorted(os.listdir("/proc/self/fd")) if value == "files" else []
    return f"{sorted(os.environ.items())} {os.getcwd()} {sys.stdin.read()!r} {len(files)}"
'''
    process = run(source, pa.field("value", pa.string()), environment={"NAME": "value"})
    [found] = process.compute(rows("files"))[0].to_pylist()
    environment, folder, read, files = found.rsplit(" ", 3)
    assert "('NAME', 'value')" in environment
    assert "secret-of-the-job" not in environment
    # Python itself sets a locale. The files are those of the pipes, the three standard ones and the listing itself.
    assert environment.count("(") <= 2
    assert (read, int(files) <= 7) == ("''", True)
    assert folder != os.getcwd()
    process.close()
    assert not Path(folder).exists()


def test_the_folder_of_a_function_is_in_that_of_its_job_which_ray_deletes_after_a_kill(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    source = "import os\ndef f(value: str) -> str: return os.getcwd()\n"
    process = run(source, pa.field("value", pa.string()))
    [folder] = process.compute(rows("x"))[0].to_pylist()
    assert Path(folder).parent == tmp_path
    process.close()
    assert list(tmp_path.iterdir()) == []


SECRET = "s3cret-Ünïcode/+value"
PEM = "-----BEGIN KEY-----\n  MIIEpAIBAAKCAQEA7\n-----END KEY-----\n"
SPELLINGS = [
    SECRET,
    base64.b64encode(SECRET.encode()).decode(),
    base64.urlsafe_b64encode(SECRET.encode()).decode().rstrip("="),
    json.dumps(SECRET),
    PEM,
    repr(PEM),
    PEM.splitlines()[1],
]
SECRETS = {"TOKEN": SECRET, "PEM": PEM, "PIN": "123"}


def assert_redacted(text: str) -> None:
    for part in (SECRET, SECRET[:7], "nicode", *SPELLINGS[1:4], "BEGIN KEY", "MIIEpAIBAAKCAQEA7"):
        assert part not in text


def test_a_function_reads_its_secrets_from_its_environment(run):
    source = '''
import os
def f(value: str) -> str:
    return os.environ[value]
'''
    process = run(source, pa.field("value", pa.string()), environment={"NAME": "value"}, secrets=SECRETS)
    assert process.compute(rows("TOKEN", "PEM", "PIN", "NAME"))[0].to_pylist() == [SECRET, PEM, "123", "value"]


def test_secrets_are_redacted_in_the_output_and_in_errors_of_rows(run, capfd):
    source = '''
import os, sys
def f(value: str) -> str:
    print("printed", value)
    os.write(2, b"written " + value.encode() + b"\\n")
    raise type(value, (Exception,), {})("before " + value + " after")
'''
    process = run(source, pa.field("value", pa.string()), secrets=SECRETS)
    errors = process.compute(rows(*SPELLINGS))[1]
    process.close()
    output = capfd.readouterr().out
    assert output.count("printed") == len(SPELLINGS) == output.count("written")
    assert_redacted(output)
    assert_redacted(json.dumps(errors, ensure_ascii=False))
    assert errors[0] == {"row": 0, "type": "user_function.***", "message": "before *** after"}


def test_secrets_are_redacted_where_long_lines_and_messages_are_cut(run, capfd):
    source = '''
def f(value: str, before: int) -> str:
    text = "x" * before + value
    print(text + "y" * 5000)
    print(text, end="")
    raise ValueError(text)
'''
    process = run(source, pa.field("value", pa.string()), parameters=("value", "before"), secrets=SECRETS)
    cases = [(spelling, before) for spelling in SPELLINGS for before in (980, 999, 3995)]
    errors = process.compute(pa.record_batch([list(each) for each in zip(*cases)], ["value", "before"]))[1]
    process.close()
    output = capfd.readouterr().out
    assert (output.count("x"), output.count("y")) == (2 * sum(before for _, before in cases), 5000 * len(cases))
    assert_redacted(output)
    assert_redacted(json.dumps(errors, ensure_ascii=False))


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("import os\ndef f(value): return 'a' * 90 + os.environ['TOKEN']", "returned 'aaa"),
        ("import os\ndef f(value): print(os.environ['TOKEN'], flush=True); os._exit(7)", "exited with code 7\n***"),
        ("import os\nraise ValueError(os.environ['TOKEN'])", "cannot be loaded: ValueError: ***"),
        ("import os\nclass f:\n  def __init__(self): raise KeyError(os.environ['PEM'])", "failed: KeyError: '***'"),
    ],
)
def test_secrets_are_redacted_in_the_failure_of_a_function(run, capfd, source, told):
    with pytest.raises(FunctionFailure) as failed:
        run(source, secrets=SECRETS).compute(rows(1.0))
    assert told in str(failed.value)
    assert_redacted(str(failed.value) + capfd.readouterr().out)


def test_secrets_of_less_than_four_characters_are_not_redacted(run, capfd):
    process = run("def f(value):\n    print('123')\n    return value", secrets={"PIN": "123"})
    process.compute(rows(1.0))
    process.close()
    assert capfd.readouterr().out == "123\n"


def test_a_function_gains_no_privileges_and_is_the_first_to_end_without_memory(run):
    source = """
def f(value: str) -> str:
    import subprocess
    return subprocess.run(["/bin/cat", "/proc/self/status", "/proc/self/oom_score_adj"], capture_output=True).stdout.decode()
"""
    [found] = run(source, pa.field("value", pa.string())).compute(rows("x"))[0].to_pylist()
    assert "\nNoNewPrivs:\t1\n" in found
    assert found.endswith("\n1000\n")


def test_neither_a_function_nor_its_programs_write_their_memory_to_a_file(run):
    source = """
import ctypes, resource, subprocess, sys
def f(value: str) -> str:
    limit = "import resource; print(resource.getrlimit(resource.RLIMIT_CORE), end='')"
    of_program = subprocess.run([sys.executable, "-c", limit], capture_output=True).stdout.decode()
    return f"{ctypes.CDLL(None).prctl(3, 0, 0, 0, 0)} {of_program}"
"""
    # The option 3 of prctl reads whether other processes of the user can read this one.
    assert run(source, pa.field("value", pa.string())).compute(rows("x"))[0].to_pylist() == ["0 (0, 0)"]


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("def f(value: float) -> float: return 'text'", "returned 'text' of the type str, and its output is double"),
        ("def f(value: pa.Array): return value.cast('string')", "values of the type string, and its output is double"),
        ("def f(value: pa.Array): return value.slice(1)", "f version 1 returned 1 values for 2 rows"),
        ("def f(value: pa.Array): return 1.0", "returned 1.0 of the type float"),
        ("def f(value: float) -> float: import os; os._exit(7)", "the process of f version 1 exited with code 7"),
        ("def f(value: float): import sys, os; print('last words', flush=True); os.abort()", "SIGABRT\nlast words"),
    ],
)
def test_a_function_that_cannot_be_used_is_an_error_in_a_sentence(run, source, told):
    process = run(source)
    with pytest.raises(FunctionFailure) as failed:
        process.compute(rows(1.0, 2.0))
    assert told in str(failed.value)


def test_a_function_whose_start_hangs_is_killed(run):
    with pytest.raises(FunctionFailure, match="the process of f version 1 did not start within 0.5 seconds"):
        run("import threading; threading.Event().wait()", start_seconds_max=0.5)


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("class f:\n    def __init__(self): raise RuntimeError('no model')", "__init__ of f version 1 failed: Runtime"),
        ("import tiltyard_no_such_module", "ModuleNotFoundError: No module named 'tiltyard_no_such_module'"),
        ("def f(value: pa.Array, other: float): ...", "f version 1 mixes parameters of rows and of arrays"),
        ("import os; os._exit(3)", "the process of f version 1 exited with code 3"),
    ],
)
def test_a_function_that_cannot_be_loaded_is_an_error_in_a_sentence(run, source, told):
    with pytest.raises(FunctionFailure) as failed:
        run(source, parameters=("value", "other"))
    assert told in str(failed.value)


def test_answers_that_are_no_frames_are_an_error(run):
    source = '''
def f(value: float) -> float:
    import os
    for number in range(3, 9):
        try:
            os.write(number, b"garbage instead of an answer")
        except OSError:
            pass
    os._exit(0)
'''
    with pytest.raises(FunctionFailure, match="these bytes are no frame"):
        run(source).compute(rows(1.0))


def test_programs_of_a_function_end_with_it(run, tmp_path):
    source = '''
def f(value: float) -> float:
    import subprocess
    program = subprocess.Popen(["/bin/sleep", "600"])
    open(PATH, "w").write(str(program.pid))
    return value
'''.replace("PATH", repr(str(tmp_path / "pid")))
    process = run(source)
    process.compute(rows(1.0))
    program = Path(f"/proc/{(tmp_path / 'pid').read_text()}/cmdline")
    assert program.read_bytes().startswith(b"/bin/sleep")
    process.close()
    wait_until(lambda: not program.exists() or program.read_bytes() == b"", "the end of the program", seconds=10)


def test_a_million_rows_of_arrays_keep_their_order(run):
    process = run("def f(value: pa.Array): return value")
    numbers = pa.array(range(1_000_000), pa.int64()).cast(pa.float64())
    values, errors = process.compute(pa.record_batch({"value": numbers}))
    assert (values.equals(numbers), errors) == (True, [])
