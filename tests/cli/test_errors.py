"""Wrong input: the exit code, one line that says what is wrong, an optional hint, and nothing on stdout."""

import json
import os
import shlex
import signal
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import numpy as np
import pytest

from dpcalc.cli.main import main

ROOT = Path(__file__).resolve().parents[2]
PASS = "rdp -n 100 -L 1 --smoothness 1 --eta 0.1"
NOISY = f"{PASS} --sigma 2"
CLIPPED = "dp-sgd -n 100 --batch-size 10 --epochs 2 --noise-multiplier 1 -d 1e-6"
FULL = f"{NOISY} -d 1e-6"
CHAIN = "shifted --steps 10 --shift 0.1 --eta 1"


def run(capsys: pytest.CaptureFixture[str], line: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as stop:
        main(shlex.split(line))
    captured = capsys.readouterr()
    assert isinstance(stop.value.code, int)
    return stop.value.code, captured.out, captured.err


def check_refusal(code: int, out: str, err: str, expected: int) -> None:
    """One line, an optional hint, and nothing else."""
    assert code == expected, err
    assert out == ""
    lines = err.splitlines()
    assert lines[0].startswith("error: ")
    assert len(lines) == 1 or (len(lines) == 2 and lines[1].startswith("  hint: ")), err
    assert "Traceback" not in err
    assert err.endswith("\n")


def test_no_arguments_shows_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "")
    assert (code, out) == (2, "")
    assert "dpcalc help TOPIC" in err
    assert "Traceback" not in err


@pytest.mark.parametrize("line", ["--help", "-h", "--version", "rdp --help", "shifted -h", "explain --help"])
def test_help_succeeds(capsys: pytest.CaptureFixture[str], line: str) -> None:
    code, out, err = run(capsys, line)
    assert code == 0
    assert out
    assert err == ""


def test_strong_convexity_beyond_smoothness(capsys: pytest.CaptureFixture[str]) -> None:
    """No loss is like that; whatever else is said, strong convexity may not help."""
    code, out, err = run(capsys, f"{FULL} --strong-convexity 2 -i 50 --json")
    if code == 0:
        found = json.loads(out)["cases"][0]
        assert all(result["bound"] != "iteration.pnsgd_contraction" for result in found["results"])
        assert any("exceeds smoothness" in obstacle["because"] for obstacle in found["not_applicable"])
    else:
        check_refusal(code, out, err, code)


# Schedule files.

FILES = [
    ("header.csv", b"shift,step_size,noise_std\n", "header but no steps"),
    ("empty.csv", b"", "is empty"),
    ("blank.csv", b"\n\n  \n# only a comment\n", "is empty"),
    ("ragged.csv", b"shift,step_size,noise_std\n1,1,1\n1,1\n", "ragged.csv:3: 2 values for 3 columns"),
    ("wide.csv", b"shift,step_size,noise_std\n1,1,1,1\n", "wide.csv:2: 4 values for 3 columns"),
    ("word.csv", b"shift,step_size,noise_std\n1,one,1\n", "word.csv:2:2: step_size: 'one' is not a number"),
    ("nan.csv", b"shift,step_size,noise_std\n1,nan,1\n", "nan.csv:2:2"),
    ("inf.csv", b"shift,step_size,noise_std\n1,inf,1\n", "inf.csv:2:2"),
    ("gap.csv", b"shift,step_size,noise_std\n1,,1\n", "gap.csv:2:2"),
    ("latin.csv", b"shift,step_size,noise_std\n1,1,\xff\n", "not UTF-8"),
    ("nul.csv", b"shift,step_size,noise_std\n1,1,\x00\n", "NUL"),
    ("long.csv", b"shift,step_size,noise_std\n1,1," + b"1" * (1 << 20) + b"\n", "longer than"),
    ("unknown.csv", b"shift,step_sise,noise_std\n1,1,1\n", "did you mean step_size?"),
    ("odd.csv", b"shift,temperature,noise_std\n1,1,1\n", "columns may be"),
    ("twice.csv", b"shift,step_size,eta,noise_std\n1,1,1,1\n", "step_size is given twice"),
    ("negative.csv", b"shift,step_size,noise_std\n1,1,1\n1,-1,1\n", "step 2"),
    ("zero.csv", b"shift,step_size,noise_std\n1,1,0\n", "step 1"),
    ("lacking.csv", b"shift,noise_std\n1,1\n", "step_size is needed"),
    ("both.csv", b"shift,step_size,noise_std,laplace_scale\n1,1,1,1\n", "both noise_std and laplace_scale"),
    ("more.csv", b"shift,contraction,step_size,noise_std,spend\n1,1,1,1,2\n", "more than is left"),
    ("less.csv", b"shift,contraction,step_size,noise_std,spend\n1,1,1,1,0.5\n", "left unspent"),
    ("text.npy", b"shift,step_size\n1,1\n", "not a readable numpy file"),
    ("text.npz", b"shift,step_size\n1,1\n", "not a readable .npz"),
    ("list.yaml", b"- 1\n- 2\n", "a list where a name is expected"),
    ("tag.yaml", b"shift: !!python/object/apply:os.system ['true']\n", "tags are not read"),
    ("broken.yaml", b"shift: [1, 2\n", "not valid YAML"),
    ("nothing.yaml", b"# nothing\n", "needs columns"),
]


@pytest.mark.parametrize(("name", "content", "text"), FILES, ids=[name for name, _, _ in FILES])
def test_schedule_files(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, name: str, content: bytes, text: str
) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    code, out, err = run(capsys, f"shifted --schedule {path} -d 1e-6")
    check_refusal(code, out, err, 2)
    assert text in err
    assert name in err or name in ("lacking.csv",)


def test_missing_directory_and_special_files(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    folder = tmp_path / "folder.csv"
    folder.mkdir()
    pipe = tmp_path / "pipe.csv"
    os.mkfifo(pipe)
    endless = tmp_path / "endless.csv"
    endless.symlink_to("/dev/zero")
    for path, text in (
        (tmp_path / "none.csv", "No such file"),
        (folder, "not a regular file"),
        (pipe, "not a regular file"),
        (endless, "not a regular file"),
    ):
        code, out, err = run(capsys, f"shifted --schedule {path} -d 1e-6")
        check_refusal(code, out, err, 2)
        assert text in err


def test_numpy_files_of_the_wrong_kind(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    np.save(tmp_path / "plain.npy", np.ones(3))
    np.save(tmp_path / "object.npy", np.array([{}], dtype=object), allow_pickle=True)
    np.savez(tmp_path / "matrix.npz", shift=np.ones((2, 2)))
    np.savez(tmp_path / "lengths.npz", shift=np.ones(2), step_size=np.ones(3))
    for name, text in (
        ("plain.npy", "no named fields"),
        ("object.npy", "not a readable numpy file"),
        ("matrix.npz", "one-dimensional"),
        ("lengths.npz", "differ in length"),
    ):
        code, out, err = run(capsys, f"shifted --schedule {tmp_path / name} -d 1e-6")
        check_refusal(code, out, err, 2)
        assert text in err


def test_a_column_in_the_file_and_as_a_flag(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "steps.csv"
    path.write_text("shift,step_size,noise_std\n1,1,1\n")
    code, out, err = run(capsys, f"shifted --schedule {path} --sigma 1 -d 1e-6")
    check_refusal(code, out, err, 2)
    assert "noise_std is a column of" in err
    for line in (f"rdp --schedule {path} -L 1 -d 1e-6", f"rdp --schedule {path} -n 7 -L 1 --smoothness 1 -d 1e-6"):
        code, out, err = run(capsys, line)
        check_refusal(code, out, err, 2)


@pytest.mark.parametrize("length", ["--steps 300", "--epochs 2"])
def test_a_schedule_of_clipped_steps_and_their_number(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, length: str
) -> None:
    path = tmp_path / "phases.csv"
    path.write_text("noise_multiplier\n2\n1\n")
    ask = f"dp-sgd -n 100 --batch-size 50 --sampling poisson --schedule {path} -d 1e-6"
    code, out, err = run(capsys, f"{ask} {length}")
    check_refusal(code, out, err, 2)
    assert "has 2 steps, and steps or epochs are also given" in err
    assert run(capsys, f"{ask} --steps 2") == run(capsys, ask)


@pytest.mark.parametrize(
    ("given", "asked"),
    [
        ("dp-sgd --sampling poisson --batch-size 5 --epochs 2", "needs records ("),
        ("dp-sgd --sampling poisson --batch-size 5 --steps 20", "needs records ("),
        ("dp-sgd --sampling shuffle --batch-size 5 --epochs 2", "needs records ("),
        ("dp-sgd --sampling poisson -n 500 --epochs 2", "needs batch_size ("),
        ("dp-ftrl --mechanism sqrt --batch-size 5 --epochs 2", "needs records ("),
        ("dp-ftrl --mechanism sqrt --steps 20", "needs epochs ("),
    ],
)
def test_what_follows_from_a_missing_parameter_is_not_asked_for(
    capsys: pytest.CaptureFixture[str], given: str, asked: str
) -> None:
    code, out, err = run(capsys, f"{given} --noise-multiplier 1 -d 1e-6")
    check_refusal(code, out, err, 2)
    assert asked in err
    assert "for example" in err


@pytest.mark.parametrize("words", ["train rows.csv -e 1", "predict model.json rows.csv", "evaluate model.json"])
def test_a_file_without_its_option(capsys: pytest.CaptureFixture[str], words: str) -> None:
    code, out, err = run(capsys, words)
    check_refusal(code, out, err, 2)
    assert err.endswith("hint: give the file by --data FILE\n")


def test_a_delta_that_would_allow_to_publish_a_record_is_remarked_once(capsys: pytest.CaptureFixture[str]) -> None:
    ask = "dp-sgd -n 500 --batch-size 50 --epochs 2 --sampling shuffle,poisson --noise-multiplier 2"
    assert run(capsys, f"{ask} -d 0.002,0.003")[2].count("publishing a record outright") == 1
    assert "publishing" not in run(capsys, f"{ask} -d 0.0019")[2]


def test_a_schedule_of_another_length_than_the_records(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "steps.csv"
    path.write_text("step_size,noise_std\n1,1\n")
    code, out, err = run(capsys, f"rdp --schedule {path} -n 7 -L 1 --smoothness 1 -d 1e-6")
    check_refusal(code, out, err, 2)
    assert "1 steps for 7 records" in err


@pytest.mark.parametrize("name", ["a\nb.csv", "a\x1b[31mb.csv"])
def test_control_characters_in_names_do_not_reach_the_terminal(capsys: pytest.CaptureFixture[str], name: str) -> None:
    with pytest.raises(SystemExit):
        main(["shifted", "--schedule", f"/nonexistent/{name}", "-d", "1e-6"])
    err = capsys.readouterr().err
    assert len(err.splitlines()) <= 2, err
    assert "\x1b" not in err


# Processes.


def environment(**more: str) -> dict[str, str]:
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    return {**os.environ, "PYTHONPATH": path, **more}


def test_interrupt() -> None:
    line = "rdp --algorithm stop -n 1001:10000:1 -L 1 --smoothness 1 --eta 0.1 -e 1 -d 1e-6 --json"
    # The announcement tells that the interpreter has come as far as the evaluation of cases.
    program = (
        "import signal, sys, dpcalc.cli.query as query\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # ignored where the tests run in the background
        "from dpcalc.cli.main import main\n"
        "ask = query.side_by_side\n"
        "def announced(*args, **more):\n"
        "    if not seen: seen.append(1); sys.stdout.write('ready\\n'); sys.stdout.flush()\n"
        "    return ask(*args, **more)\n"
        "seen = []\n"
        "query.side_by_side = announced\n"
        "main(sys.argv[1:])\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, *shlex.split(line)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(), text=True,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert out == ""
    assert err.strip() == "error: interrupted"


@pytest.mark.few(1)
@pytest.mark.parametrize("more", [(), ("--jobs", "2")])
def test_termination_is_as_clean_as_an_interrupt(tmp_path: Path, more: tuple[str, ...]) -> None:
    """While the report is written: no draft is left, and the old one stays."""
    recipe = "dpcalc: recipe/1\ncases:\n  a: {steps: 5, shift: 0.1, noise_std: 1, matrix: {epsilon: [1, 2, 3, 4]}}\n"
    (tmp_path / "r.yaml").write_text(recipe.replace("cases:", "defaults: {command: shifted}\ncases:"))
    (tmp_path / "out.json").write_text("before")
    program = (
        "import os, signal, sys\n"
        "from dpcalc.cli.main import main\n"
        "sync = os.fsync\n"
        "def told(handle):\n"
        "    sys.stdout.write('ready\\n'); sys.stdout.flush()\n"
        "    while True: signal.pause()\n"
        "os.fsync = told\n"
        "if __name__ == '__main__': main()\n"
    )
    (tmp_path / "program.py").write_text(program)
    with subprocess.Popen(
        [sys.executable, "program.py", "check", "r.yaml", "--json", "-o", "out.json", *more],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(), text=True, cwd=tmp_path,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (143, "")
    assert err.strip().endswith("error: terminated")
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_file()) == ["out.json", "program.py", "r.yaml"]
    assert (tmp_path / "out.json").read_text() == "before"


@pytest.mark.few(2)
@pytest.mark.parametrize(
    "program",
    [
        "import runpy; runpy.run_module('dpcalc', run_name='__main__')",
        "import runpy; runpy.run_module('dpcalc', run_name='__main__', alter_sys=True)",
        "from dpcalc.cli.main import main; main()",
        "from dpcalc.cli.main import main; main(['bounds'])",
    ],
)
def test_who_calls_the_program_lives_on(program: str) -> None:
    """SystemExit passes through the caller's frames, and the caller handles signals as before."""
    wrapped = (
        "import signal, sys\n"
        "before = signal.getsignal(signal.SIGTERM)\n"
        f"try:\n    {program}\n"
        "except SystemExit as end:\n    print('left with', end.code, signal.getsignal(signal.SIGTERM) is before)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", wrapped, "bounds"], env=environment(), capture_output=True, text=True, check=False,
        timeout=60,
    )  # fmt: skip
    assert done.stdout.endswith("left with 0 True\n")
    assert (done.returncode, done.stderr) == (0, "")


def test_a_profile_of_the_program_is_printed() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "cProfile", "-m", "dpcalc", "bounds"], env=environment(), capture_output=True, text=True,
        check=False, timeout=60,
    )  # fmt: skip
    assert "function calls" in done.stdout


def test_the_script_ends_its_process() -> None:
    """It is in a hurry: what Python would take apart is left, what others registered is not."""
    program = (
        "import atexit; from dpcalc.cli.main import run; atexit.register(print, 'at exit')\n"
        "try:\n    run()\nfinally:\n    print('unwound')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, "bounds", "--nothing"], env=environment(), capture_output=True, text=True,
        check=False, timeout=60,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (2, "at exit\n")
    script = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["scripts"]
    assert script == {"dpcalc": "dpcalc.cli.main:run"}


@pytest.mark.few(3)
@pytest.mark.parametrize("line", [FULL, f"{FULL} --json", "bounds", "cite", "schema", "explain iteration.stop"])
def test_closed_pipe(line: str) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "dpcalc", *shlex.split(line)],
            stdout=writing, stderr=subprocess.PIPE, env=environment(), text=True, timeout=60, check=False,
        )  # fmt: skip
    finally:
        os.close(writing)
    assert done.stderr == ""
    assert done.returncode in (0, 141)


def test_debug_shows_the_traceback() -> None:
    command = [sys.executable, "-m", "dpcalc", "rdp", "-n", "0"]
    plain = subprocess.run(command, capture_output=True, env=environment(DPCALC_DEBUG=""), text=True, check=False)
    debug = subprocess.run(command, capture_output=True, env=environment(DPCALC_DEBUG="1"), text=True, check=False)
    assert (plain.returncode, debug.returncode) == (2, 2)
    assert "Traceback" not in plain.stderr
    assert "Traceback" in debug.stderr
    assert plain.stderr in debug.stderr


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full")
def test_a_full_disk_is_no_internal_error() -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "dpcalc", *shlex.split(FULL)],
            stdout=full, stderr=subprocess.PIPE, env=environment(), text=True, timeout=60, check=False,
        )  # fmt: skip
    assert done.returncode not in (0, 1)
    assert "internal error" not in done.stderr
    assert "Traceback" not in done.stderr


def outcome(line: str, redirection: str, **variables: str) -> subprocess.CompletedProcess[str]:
    command = f"{shlex.quote(sys.executable)} -m dpcalc {line} {redirection}"
    return subprocess.run(
        ["bash", "-c", command], capture_output=True, env=environment(**variables), text=True, timeout=60, check=False
    )


def test_closed_standard_error_keeps_the_exit_code() -> None:
    assert outcome("rdp -n 0", "2>&-").returncode == 2


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("line", "redirection"),
    [(FULL, ">&-"), ("bounds", ">&-"), ("shifted --schedule - --contraction 1 -d 1e-6", "<&-")],
)
def test_closed_streams_are_no_internal_error(line: str, redirection: str) -> None:
    done = outcome(line, redirection)
    assert done.returncode not in (1, 4)
    assert "internal error" not in done.stderr


@pytest.mark.few(2)
@pytest.mark.parametrize("format", ["plain", "csv", "markdown", "statement"])
def test_a_path_that_stdout_cannot_encode(tmp_path: Path, format: str) -> None:
    path = tmp_path / "\u00e9.csv"
    path.write_text("shift,contraction,step_size,noise_std\n0.1,1,1,1\n")
    line = f"shifted --schedule {shlex.quote(str(path))} -d 1e-6 --format {format}"
    done = outcome(line, "", PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    assert done.returncode == 0, done.stderr


def test_no_library_warning_reaches_the_user() -> None:
    done = outcome("shifted --steps 5 --shift 1 --eta 1 --laplace-scale 1e-300 -d 1e-6", "")
    assert done.returncode in (0, 3)
    assert "RuntimeWarning" not in done.stderr


# --- the words of other programs --------------------------------------------------------------------------------------
