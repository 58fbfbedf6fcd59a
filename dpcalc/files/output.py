"""Writing results atomically: a file is either the old one or the complete new one."""

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
    """Write ``text`` to ``path`` atomically, or to stdout if path is None or ``-``.

    Args:
        text: the text. Commands that a CI server or a terminal would obey are made inert.
        path: the file.
        option: the flag that named the path.
        commands: whether the text is meant as commands to a CI server, and is written unchanged.

    Raises:
        SpecError: the file cannot be written; it is unchanged.
        OSError: the text could not be written to stdout completely.
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

    A path that is a link, or one of several names of a file, is replaced; without ``link`` it is refused, for a file
    that is changed rather than created.

    Raises:
        SpecError: the file cannot be written; it is unchanged.
    """
    with _refusing(path, option), _file(path, link=link) as file:
        file.write(data)


@contextlib.contextmanager
def in_pieces(path: str | None, option: str = "-o") -> Iterator[Callable[[str], None]]:
    """Pass a function that writes whole lines of text, as `write` does; the file changes once all are written.

    Raises:
        SpecError: the file cannot be written; it is unchanged.
        OSError: the text could not be written to stdout completely.
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
    """Return a file opened for reading and appending; a new one is readable only for this user.

    Raises:
        SpecError: it cannot be opened, is no regular file, is reached through a link, or has other names too.
    """
    from dpcalc.files.place import target

    with _refusing(path, option), target(path) as place:
        return os.fdopen(place.open_to_add(), "r+b")


def append(text: str, path: str, option: str) -> None:
    """Append ``text`` to a file, which is created if missing, or write it to a device.

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
    """Refuse outputs before any work whose result would be lost or would overwrite an input.

    Args:
        outputs: (path, option that named it); None stands for stdout.
        inputs: the files to read; None stands for no file.

    Raises:
        SpecError: an output cannot be written, two go to the same file, or one would replace an input; links and other
            names of a file count as the file.
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
    """Return the identities by which two paths are the same file: the file, a link itself, and the name in its folder.

    ``stream`` is the descriptor of ``-``.
    """
    from dpcalc.files.place import ProjectFile

    if path == STANDARD_STREAM and not isinstance(path, ProjectFile):
        path = f"/dev/fd/{stream}"
    identities = set[object]()
    with contextlib.suppress(OSError, ValueError):  # an invalid path is refused when it is opened
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
    """Return whether a path leads to standard output."""
    return path is None or _descriptor(path) == 1


def is_file(path: str) -> bool:
    """Return whether a path leads to a file, not to a stream, a device or a pipe."""
    return _descriptor(path) is None and (os.path.isfile(path) or not os.path.exists(path))


def say(text: str, *, commands: bool = False) -> None:
    """Write a line to stderr, if there is one; ``commands`` as in `write`."""
    if sys.stderr is not None:
        sys.stderr.write((text if commands else inert(text)) + "\n")
        sys.stderr.flush()


@contextlib.contextmanager
def _refusing(path: str, option: str) -> Iterator[None]:
    """Turn errors about a path into a `SpecError`."""
    try:
        yield
    except OSError as error:
        why, cure = error.strerror or error, getattr(error, "cure", None)
        raise SpecError(f"cannot write {path}: {why}", cure or f"choose another file for {option}") from None
    except ValueError:  # a NUL, or characters that no file system encodes
        raise SpecError(f"{path!r} is not a path", f"choose another file for {option}") from None


def _descriptor(path: str) -> int | None:
    """Return the descriptor that a path stands for; None if it is an ordinary path."""
    match = _DESCRIPTOR.fullmatch(path)
    return int(match[1]) if match else _STANDARD.get(path)


@contextlib.contextmanager
def _file(path: str, *, link: bool = True) -> Iterator[Any]:
    """Pass a file to write bytes to: a path's descriptor or device, or a draft that replaces its file at the end.

    A link, or one of several names of a file, is replaced only with ``link``, else refused.
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
    # The name is chosen before the file is created, so that an interrupt at any moment can remove it.
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
    """A file whose writes are complete or fail: a system write may be partial, and Python's streams lose the rest.

    ``raw`` is None for a closed stream. Without ``keep``, text that cannot be written is dropped, and ``lost`` says
    why.
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
            if count is None:  # a full pipe that does not block
                import select

                select.select([], [self._raw], [])
            elif count == 0:
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            else:
                left = left[count:]
        return len(data)


@contextlib.contextmanager
def whole_streams() -> Iterator[_Whole]:
    """Make stdout write completely or raise, at once and not at exit; yield stderr.

    A message that cannot be written to stderr raises nothing, so that the remaining work is done; ``lost`` says why.
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
    """Return the unbuffered file below a stream of the interpreter; None if it has none."""
    buffer = getattr(stream, "buffer", None)
    raw = getattr(buffer, "raw", buffer)
    return raw if isinstance(raw, io.RawIOBase) else None


def _wrapped(stream: TextIO | None, whole: _Whole) -> TextIO:
    if stream is not None and _raw(stream) is None:
        return stream  # a replacement that captures the output
    if stream is not None:
        stream.flush()
    encoding = stream.encoding if stream is not None else "utf-8"
    return io.TextIOWrapper(whole, encoding, "backslashreplace", write_through=True)  # type: ignore[type-var]
