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
from typing import IO, TYPE_CHECKING, Any, TextIO

from dpcalc.errors import SpecError
from dpcalc.files import STANDARD_STREAM
from dpcalc.inert import Inert, inert

if TYPE_CHECKING:
    from dpcalc.files.place import Target

_STANDARD = {"-": 1, "/dev/stdout": 1, "/dev/stderr": 2}
_MODE_OF_HANDLE = os.chmod in os.supports_fd
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


def write_bytes(data: bytes, path: str, option: str, *, link: bool = True) -> None:
    """Write ``data`` to the file ``path`` atomically; ``option`` is the flag that named it.

    A link in its place, or one of several names of a file, is replaced, and refused where ``link`` is not set: of a
    file that is changed, not made anew.

    Raises:
        SpecError: the file cannot be written; nothing of it was changed.
    """
    with _refusing(path, option), _file(path, link=link) as file:
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
        SpecError: it cannot be opened, is no regular file, is reached through a link, or has other names as well.
    """
    from dpcalc.files.place import target

    with _refusing(path, option), target(path) as place:
        return os.fdopen(place.open_to_add(), "r+b")


def append(text: str, path: str, option: str) -> None:
    """Add ``text`` to the end of a file, which is made where there is none, or write it to a device.

    Raises:
        SpecError: as `open_to_add`, or it cannot be written.
    """
    from dpcalc.files.place import target

    with _refusing(path, option), contextlib.ExitStack() as stack:
        if _descriptor(path) is not None:
            file = stack.enter_context(_file(path))
        else:
            place = stack.enter_context(target(path))
            opened = place.open_device() if place.is_device else place.open_to_add()
            file = stack.enter_context(open(opened, "ab"))
        file.write(text.encode("utf-8", "backslashreplace"))


def write_to_stdout(text: str) -> None:
    """Write lines of text to stdout, made inert."""
    sys.stdout.write(inert(text))
    sys.stdout.flush()


def check_outputs(outputs: Iterable[tuple[str | None, str]], inputs: Iterable[str | None] = ()) -> None:
    """Refuse outputs before work is done whose result would be lost, or would cost a file that is read.

    Args:
        outputs: where to, with the option that says so; None stands for stdout.
        inputs: the files that are read for it; None stands for no file.

    Raises:
        SpecError: one cannot be written, two go to the same place, or one goes to the place of an input, by whatever
            name: a link or a second name is the same file.
    """
    outputs = list(outputs)
    if all(path is None for path, _ in outputs):
        return
    read = {one for path in inputs if path is not None for one in _identities(path, 0)}
    taken = set[object]()
    for path, option in outputs:
        place = _identities(STANDARD_STREAM if path is None or is_stdout(path) else path, 1)
        if not place.isdisjoint(taken):
            raise SpecError("two outputs go to the same place", "give each a file of its own, with -o and --report")
        taken |= place
        if path is None or is_stdout(path):
            continue
        if not place.isdisjoint(read):
            raise SpecError(f"{path} is read, and would be written over", f"choose another file for {option}")
        with _refusing(path, option):
            _refuse_unwritable(path)


def _refuse_unwritable(path: str) -> None:
    descriptor = _descriptor(path)
    if descriptor is not None:
        os.fstat(descriptor)
        return
    from dpcalc.files.place import target

    with target(path) as place:
        place.refuse_unwritable()


def _identities(path: str, stream: int) -> set[object]:
    """Return what tells that two paths are one file: the file, a link itself, and the name in its folder.

    ``stream`` is the descriptor that ``-`` stands for.
    """
    from dpcalc.files.place import ProjectFile

    if path == STANDARD_STREAM and not isinstance(path, ProjectFile):
        path = f"/dev/fd/{stream}"
    identities = set[object]()
    with contextlib.suppress(OSError, ValueError):  # what is no path is refused where it is opened
        if (descriptor := _descriptor(path)) is not None:
            identities.add(descriptor)
            status = os.fstat(descriptor)
            return identities | ({(status.st_dev, status.st_ino)} if stat.S_ISREG(status.st_mode) else set())
        path = path.real if isinstance(path, ProjectFile) else path
        folder = os.stat(os.path.dirname(path) or os.curdir)
        identities.add((folder.st_dev, folder.st_ino, os.path.basename(path)))
        for status in (os.lstat(path), os.stat(path)):
            identities.add((status.st_dev, status.st_ino))
    return identities


def is_stdout(path: str | None) -> bool:
    """Return whether what is written to a path goes to standard output."""
    return path is None or _descriptor(path) == 1


def is_file(path: str) -> bool:
    """Return whether what is written to a path goes to a file of that name, not to a stream, a device or a pipe."""
    return _descriptor(path) is None and (os.path.isfile(path) or not os.path.exists(path))


def say(text: str, *, commands: bool = False) -> None:
    """Write a line to stderr, if there is one; ``commands`` as in `write`."""
    if sys.stderr is not None:
        sys.stderr.write((text if commands else inert(text)) + "\n")
        sys.stderr.flush()


@contextlib.contextmanager
def _refusing(path: str, option: str) -> Iterator[None]:
    """Report what goes wrong with a path as a refusal of it."""
    try:
        yield
    except OSError as error:
        why, cure = error.strerror or error, getattr(error, "cure", None)
        raise SpecError(f"cannot write {path}: {why}", cure or f"choose another file for {option}") from None
    except ValueError:  # a NUL, or what no file system encodes
        raise SpecError(f"{path!r} is not a path", f"choose another file for {option}") from None


def _descriptor(path: str) -> int | None:
    """Return the descriptor that a path stands for, if it is no file of its own."""
    match = _DESCRIPTOR.fullmatch(path)
    return int(match[1]) if match else _STANDARD.get(path)


@contextlib.contextmanager
def _file(path: str, *, link: bool = True) -> Iterator[Any]:
    """Pass a file to write bytes to: a path's descriptor or device, or what replaces its file at the end.

    A link, or one of several names, is replaced as well where ``link`` says so, and refused else.
    """
    descriptor = _descriptor(path)
    if descriptor is not None:
        with open(os.dup(descriptor), "wb", buffering=0) as raw:
            yield _Whole(raw)
        return
    from dpcalc.files.place import target

    with target(path) as place:
        if not link:
            place.refuse_link()
        if place.is_device:
            with open(place.open_device(), "wb") as device:  # /dev/null, a pipe
                yield device
        else:
            with _replacing(place) as file:
                yield file


@contextlib.contextmanager
def _replacing(place: Target) -> Iterator[IO[bytes]]:
    """Pass a file beside a target, which is renamed over it at the end."""
    from dpcalc.files.place import draft_name

    mode = place.mode
    # Named before it is made, so that an interrupt at any moment knows what to remove.
    draft = draft_name()

    def opened(name: str, flags: int) -> int:
        return place.folder.open(name, flags, 0o666 if mode is None else mode)  # never more readable than the target

    try:
        with open(draft, "xb", opener=opened) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
            if mode is not None and _MODE_OF_HANDLE:
                os.chmod(file.fileno(), mode)
        place.folder.replace(draft, place.name)
    except BaseException:
        place.folder.remove(draft)
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
