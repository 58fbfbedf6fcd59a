"""Writing results: to stdout, or to a file that is either the old one or the complete new one."""

from __future__ import annotations

import contextlib
import os
import sys

from dpcalc.errors import SpecError


def write(text: str, path: str | None) -> None:
    """Write ``text`` to ``path`` atomically, or to stdout where path is None or ``-``.

    Raises:
        SpecError: the file cannot be written; nothing of it was changed.
    """
    if path in (None, "-"):
        _print(text)
        return
    assert path is not None
    write_bytes(text.encode("utf-8", "backslashreplace"), path, "-o")


def write_bytes(data: bytes, path: str, option: str) -> None:
    """Write ``data`` to the file ``path`` atomically; ``option`` is the flag that named it.

    Raises:
        SpecError: the file cannot be written; nothing of it was changed.
    """
    try:
        _replace(os.path.realpath(path), data)
    except OSError as error:
        raise SpecError(f"cannot write {path}: {error.strerror}", f"choose another file for {option}") from None


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
    """Write beside the target, then rename over it. A target that is no regular file is refused."""
    import tempfile

    if os.path.exists(target) and not os.path.isfile(target):
        with open(target, "wb") as device:  # /dev/stdout, /dev/null, a pipe: nothing to replace
            device.write(data)
        return
    folder = os.path.dirname(target) or "."
    handle, draft = tempfile.mkstemp(prefix=".dpcalc-", dir=folder)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        mode = os.stat(target).st_mode & 0o777 if os.path.exists(target) else 0o666 & ~_umask()
        os.chmod(draft, mode)
        os.replace(draft, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(draft)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
