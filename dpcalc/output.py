"""Writing results: to stdout, or to a file that is either the old one or the complete new one."""

from __future__ import annotations

import contextlib
import os
import sys

from dpcalc.errors import SpecError


def write(text: str, path: str | None, option: str = "-o") -> None:
    """Write ``text`` to ``path`` atomically, or to stdout where path is None or ``-``; ``option`` named the path.

    Raises:
        SpecError: the file cannot be written; nothing of it was changed.
    """
    if path in (None, "-"):
        _print(text)
        return
    assert path is not None
    write_bytes(text.encode("utf-8", "backslashreplace"), path, option)


def write_bytes(data: bytes, path: str, option: str) -> None:
    """Write ``data`` to the file ``path`` atomically; ``option`` is the flag that named it.

    Raises:
        SpecError: the file cannot be written; nothing of it was changed.
    """
    try:
        _replace(os.path.realpath(path), data)
    except OSError as error:
        raise SpecError(f"cannot write {path}: {error.strerror}", f"choose another file for {option}") from None
    except ValueError:  # a NUL, or what no file system encodes
        raise SpecError(f"{path!r} is not a path", f"choose another file for {option}") from None


def _print(text: str) -> None:
    if sys.stdout is None:
        raise SpecError("standard output is closed", "write to a file with -o FILE")
    try:
        sys.stdout.write(text)
    except UnicodeEncodeError:
        encoding = sys.stdout.encoding
        sys.stdout.write(text.encode(encoding, "backslashreplace").decode(encoding))
    sys.stdout.flush()


def _replace(target: str, data: bytes) -> None:
    """Write beside the target, then rename over it. To a target that is no regular file, write straight away."""
    if os.path.exists(target) and not os.path.isfile(target):
        with open(target, "wb") as device:  # /dev/stdout, /dev/null, a pipe: nothing to replace
            device.write(data)
        return
    mode = os.stat(target).st_mode & 0o777 if os.path.exists(target) else None
    # Named before it is made, so that an interrupt at any moment knows what to remove.
    draft = os.path.join(os.path.dirname(target) or ".", f".dpcalc-{os.urandom(8).hex()}")

    def opened(path: str, flags: int) -> int:
        return os.open(path, flags, 0o666 if mode is None else mode)  # never more readable than the target

    try:
        with open(draft, "xb", opener=opened) as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        if mode is not None:
            os.chmod(draft, mode)
        os.replace(draft, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(draft)
        raise
