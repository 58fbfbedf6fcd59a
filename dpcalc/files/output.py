"""Writing results: whole or not at all. A file is either the old one or the complete new one."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import re
import stat
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import IO, Any, TextIO

from dpcalc.errors import SpecError
from dpcalc.files import STANDARD_STREAM
from dpcalc.inert import Inert, inert

_STANDARD = {"-": 1, "/dev/stdout": 1, "/dev/stderr": 2}
_DESCRIPTOR = re.compile(r"/(?:dev|proc/self)/fd/([0-9]{1,9})")


def write(text: str, path: str | None, option: str = "-o", *, commands: bool = False) -> None:
    """Write ``text`` to ``path`` atomically, or to stdout where path is None or ``-``; ``option`` named the path.

    Args:
        text: what to write. What a CI server would run or a terminal obey is made inert.
        path: where to.
        option: the flag that named the path.
        commands: whether the text is made of commands to a CI server on purpose, and stays as it is.

    Raises:
        SpecError: the file cannot be written; nothing of it was changed.
        OSError: not all of it could be written to stdout.
    """
    text = text if commands or isinstance(text, Inert) else inert(text, coloured=True)
    if is_stdout(path):
        sys.stdout.write(text)
        sys.stdout.flush()
        return
    assert path is not None
    write_bytes(text.encode("utf-8", "backslashreplace"), path, option)


def write_bytes(data: bytes, path: str, option: str) -> None:
    """Write ``data`` to the file ``path`` atomically; ``option`` is the flag that named it.

    Raises:
        SpecError: the file cannot be written; nothing of it was changed.
    """
    with _refusing(path, option), _file(path) as file:
        file.write(data)


@contextlib.contextmanager
def in_pieces(path: str | None, option: str = "-o") -> Iterator[Callable[[str], None]]:
    """Pass a function that writes whole lines of text, as `write` does; the file changes once all are written.

    Raises:
        SpecError: the file cannot be written; nothing of it was changed.
        OSError: not all of it could be written to stdout.
    """
    if is_stdout(path):
        yield write_to_stdout
        return
    assert path is not None
    with contextlib.ExitStack() as stack:
        with _refusing(path, option):
            file = stack.enter_context(_file(path))

        def write_to_file(text: str) -> None:
            with _refusing(path, option):
                file.write(inert(text).encode("utf-8", "backslashreplace"))

        yield write_to_file
        with _refusing(path, option):
            stack.close()


def open_to_add(path: str, option: str) -> IO[bytes]:
    """Return a file that is read and added to; it is made, for this user alone, where there is none.

    Raises:
        SpecError: it cannot be opened, is no regular file, or is a link that leads out of its project.
    """
    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0)
    with _refusing(path, option):
        descriptor = os.open(_target(path), flags, 0o600)
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise OSError("it is no regular file")
        return os.fdopen(descriptor, "r+b")


def write_to_stdout(text: str) -> None:
    """Write lines of text to stdout, made inert."""
    sys.stdout.write(inert(text))
    sys.stdout.flush()


def refuse_unwritable(path: str | None, option: str) -> None:
    """Refuse a file that cannot be written, before work is done whose result would be lost.

    Raises:
        SpecError: as `write_bytes`, as far as it can be seen without writing.
    """
    if path is None or is_stdout(path):
        return
    with _refusing(path, option):
        descriptor = _descriptor(path)
        if descriptor is not None:
            os.fstat(descriptor)
        elif os.path.isdir(target := _target(path)):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        elif _is_device(target):
            if not os.access(target, os.W_OK):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        else:
            _try_beside(target)


def refuse_over(inputs: Iterable[str | None], outputs: Iterable[str | None]) -> None:
    """Refuse to write over a file that is read; a name of None stands for no file.

    Raises:
        SpecError: an output goes to the place of an input.
    """
    read = {place_of(path) for path in inputs if path is not None}
    for path in outputs:
        if path is not None and not is_stdout(path) and place_of(path) in read:
            raise SpecError(f"{path} is read, and would be written over", "choose another file for the output")


def place_of(path: str | None) -> str:
    """Return the place that a path stands for, by one name."""
    if is_stdout(path):
        return STANDARD_STREAM
    assert path is not None
    return path if "\0" in path else os.path.realpath(path)  # what is no path is refused where it is written


def is_stdout(path: str | None) -> bool:
    """Return whether what is written to a path goes to standard output."""
    return path is None or _descriptor(path) == 1


def say(text: str, *, commands: bool = False) -> None:
    """Write a line to stderr, if there is one; ``commands`` as in `write`."""
    if sys.stderr is not None:
        sys.stderr.write((text if commands else inert(text)) + "\n")
        sys.stderr.flush()


@contextlib.contextmanager
def _refusing(path: str, option: str) -> Iterator[None]:
    """Report what goes wrong with a path as a refusal of it."""
    from dpcalc.files.paths import LeavesProject

    try:
        yield
    except OSError as error:
        why = error.strerror or error
        raise SpecError(f"cannot write {path}: {why}", f"choose another file for {option}") from None
    except LeavesProject:
        raise SpecError(
            f"cannot write {path}: it is a link that leads out of the project", "name the file that it leads to"
        ) from None
    except ValueError:  # a NUL, or what no file system encodes
        raise SpecError(f"{path!r} is not a path", f"choose another file for {option}") from None


def _descriptor(path: str) -> int | None:
    """Return the descriptor that a path stands for, if it is no file of its own."""
    match = _DESCRIPTOR.fullmatch(path)
    return int(match[1]) if match else _STANDARD.get(path)


def _target(path: str) -> str:
    """Return the file that is written, a link followed.

    A checkout may hold a link under the name of a report. It must not decide which file outside is overwritten, nor
    lose the report in a device. The links of the system's own folders are not of a checkout.

    Raises:
        LeavesProject: the path is a link that leads out of its project.
    """
    folder = os.path.dirname(path) or "."
    target = os.path.realpath(path)
    if os.path.islink(path) and not os.path.realpath(folder).startswith(("/dev", "/proc/")):
        from dpcalc.files.paths import inside, project_of

        inside(project_of(folder), target, path)
    return target


def _is_device(target: str) -> bool:
    """Return whether a path is a device or a pipe: nothing that could be replaced."""
    return os.path.exists(target) and not os.path.isfile(target)


def _beside(target: str) -> str:
    """Return a new name in the target's folder."""
    return os.path.join(os.path.dirname(target) or ".", f".dpcalc-{os.urandom(8).hex()}")


def _try_beside(target: str) -> None:
    draft = _beside(target)
    try:
        os.close(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    finally:
        with contextlib.suppress(OSError):
            os.unlink(draft)


@contextlib.contextmanager
def _file(path: str) -> Iterator[Any]:
    """Pass a file to write bytes to: a path's descriptor or device, or what replaces its file at the end."""
    descriptor = _descriptor(path)
    if descriptor is not None:
        with open(os.dup(descriptor), "wb", buffering=0) as raw:
            yield _Whole(raw)
    elif _is_device(target := _target(path)):
        with open(target, "wb") as device:  # /dev/null, a pipe
            yield device
    else:
        with _replacing(target) as file:
            yield file


@contextlib.contextmanager
def _replacing(target: str) -> Iterator[IO[bytes]]:
    """Pass a file beside the target, which is renamed over it at the end."""
    mode = os.stat(target).st_mode & 0o777 if os.path.exists(target) else None
    # Named before it is made, so that an interrupt at any moment knows what to remove.
    draft = _beside(target)

    def opened(path: str, flags: int) -> int:
        return os.open(path, flags, 0o666 if mode is None else mode)  # never more readable than the target

    try:
        with open(draft, "xb", opener=opened) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if mode is not None:
            os.chmod(draft, mode)
        os.replace(draft, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(draft)
        raise


# --- the standard streams ---------------------------------------------------------------------------------------------


class _Whole(io.RawIOBase):
    """A file of which every write is whole or fails: a write may take a part only, and Python's streams lose the rest.

    ``raw`` is None for a stream that is closed. Where ``keep`` is not set, what cannot be written is given up, and
    ``lost`` says why.
    """

    def __init__(self, raw: Any, *, keep: bool = True) -> None:
        self._raw = raw
        self._keep = keep
        self.lost: OSError | None = None

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        if self._raw is None:
            raise io.UnsupportedOperation("fileno")
        return int(self._raw.fileno())

    def isatty(self) -> bool:
        return self._raw is not None and bool(self._raw.isatty())

    def write(self, data: Any, /) -> int:
        try:
            return self._all(memoryview(data).cast("B"))
        except OSError as error:
            if self._keep:
                raise
            self.lost = error
            return len(data)

    def _all(self, data: memoryview) -> int:
        if self._raw is None:
            raise OSError(errno.EBADF, "standard output is closed")
        left = data
        while left:
            count = self._raw.write(left)
            if count is None:  # a pipe that is full and does not wait
                import select

                select.select([], [self._raw], [])
            elif count == 0:
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            else:
                left = left[count:]
        return len(data)


@contextlib.contextmanager
def whole_streams() -> Iterator[_Whole]:
    """Within it, stdout takes all that is written or raises, and never at exit.

    What is yielded is stderr: its ``lost`` says why a message could not be written.

    A message that cannot be written to stderr raises nothing, for it must not cost what is still to be done.
    """
    streams, messages = (sys.stdout, sys.stderr), _Whole(None, keep=False)
    try:
        sys.stdout = _wrapped(sys.stdout, _Whole(_raw(sys.stdout)))
        if sys.stderr is not None:
            messages = _Whole(_raw(sys.stderr), keep=False)
            sys.stderr = _wrapped(sys.stderr, messages)
        yield messages
    finally:
        sys.stdout, sys.stderr = streams


def _raw(stream: TextIO | None) -> Any:
    """Return the unbuffered file below a stream of the interpreter's; None where it has none."""
    buffer = getattr(stream, "buffer", None)
    raw = getattr(buffer, "raw", buffer)
    return raw if isinstance(raw, io.RawIOBase) else None


def _wrapped(stream: TextIO | None, whole: _Whole) -> TextIO:
    if stream is not None and _raw(stream) is None:
        return stream  # one that somebody put in its place, to catch what is printed
    if stream is not None:
        stream.flush()
    encoding = stream.encoding if stream is not None else "utf-8"
    return io.TextIOWrapper(whole, encoding, "backslashreplace", write_through=True)  # type: ignore[type-var]
