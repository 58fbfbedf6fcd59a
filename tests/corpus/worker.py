"""Answers questions in one process: reads one line of JSON a question from stdin, writes one line of JSON an answer.

Run as a script by any interpreter that has dpcalc. Only the standard library and dpcalc's entry point are used.
"""

import base64
import contextlib
import faulthandler
import hashlib
import io
import json
import os
import signal
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

GRACE = 10
"""A process that sleeps, or does not look at signals, is killed after so many times the patience."""
DRAWINGS = (".svg", ".png", ".pdf")
"""Files whose content depends on the drawing library."""


class Hung(BaseException):
    """A question took more processor time than allowed."""


def _hung(*_: Any) -> None:
    raise Hung


def answered(main: Callable[[list[str]], None], question: Mapping[str, Any], patience: int) -> dict[str, Any]:
    """Return the answer to one question: exit code, stdout, stderr, files written, seconds of a processor."""
    begun = time.process_time()
    with tempfile.TemporaryDirectory() as name, contextlib.chdir(name), _environment(question["env"]):
        for path, content in question["files"].items():
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            Path(path).write_bytes(base64.b64decode(content))
        code, out, err = _ran(main, question["argv"], patience)
        folder = os.path.realpath(name)
        texts = [text.replace(folder, "FOLDER").replace(name, "FOLDER") for text in (out, err)]
        written = dict(_written(Path(), set(question["files"])))
    seconds = round(time.process_time() - begun, 3)
    return {"code": code, "stdout": texts[0], "stderr": texts[1], "written": written, "seconds": seconds}


def _ran(main: Callable[[list[str]], None], argv: list[str], patience: int) -> tuple[int | str, str, str]:
    out, err = _stream(), _stream()
    code: int | str = 0
    sys.argv = ["dpcalc", *argv]
    faulthandler.dump_traceback_later(patience * GRACE, exit=True)
    signal.setitimer(signal.ITIMER_PROF, patience)  # whatever else the machine does
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), warnings.catch_warnings():
            main(argv)
    except SystemExit as stop:
        code = 0 if stop.code is None else stop.code
    except Hung:
        return "hung", "", ""
    except Exception as error:
        code = f"raised {type(error).__name__}: {error}"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        faulthandler.cancel_dump_traceback_later()
    return code, _text(out), _text(err)


def _stream() -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors="backslashreplace")


def _text(stream: io.TextIOWrapper) -> str:
    stream.flush()
    buffer: Any = stream.buffer
    return str(buffer.getvalue().decode("utf-8", "replace"))


@contextlib.contextmanager
def _environment(more: Mapping[str, str]) -> Iterator[None]:
    before = dict(os.environ)
    os.environ.update(more)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def _written(folder: Path, given: set[str]) -> Iterator[tuple[str, str]]:
    """Yield the name and the content of every file that is new; a digest where it is no text."""
    for path in sorted(folder.rglob("*")):
        if path.is_dir() or str(path) in given:
            continue
        content = path.read_bytes()
        if path.suffix in DRAWINGS:
            yield str(path), "a drawing"
            continue
        try:
            yield str(path), content.decode()
        except UnicodeDecodeError:
            yield str(path), hashlib.sha256(content).hexdigest()


def serve(patience: int) -> None:
    """Answer what stdin asks, until it ends."""
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # nothing that is printed past sys.stdout gets among the answers
    questions = os.fdopen(os.dup(0), encoding="utf-8")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    signal.signal(signal.SIGPROF, _hung)
    import dpcalc
    from dpcalc.cli.main import main

    print(json.dumps(os.path.dirname(str(dpcalc.__file__))), file=replies, flush=True)
    for line in questions:
        print(json.dumps(answered(main, json.loads(line), patience)), file=replies, flush=True)


if __name__ == "__main__":
    serve(int(sys.argv[1]))
