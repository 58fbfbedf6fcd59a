"""Which file is opened: a regular one, and for a recipe exactly the one that was checked to lie inside its project.

A path inside a project is resolved once. It is opened from the project's folder downwards, one part at a time, and no
part may be a link: the file that was checked is the file that is opened, whatever happens in between. A hard link looks
like the file itself, but whoever may make one inside the project can already read what it leads to.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from typing import IO

from dpcalc.errors import SpecError
from dpcalc.files.place import FileError

_MARKERS = (".git", "pyproject.toml")
# Not blocking, so that opening a pipe that nobody writes to does not wait.
_FLAGS = os.O_RDONLY | sum(getattr(os, name, 0) for name in ("O_NONBLOCK", "O_NOCTTY", "O_CLOEXEC", "O_BINARY"))
NO_LINK = getattr(os, "O_NOFOLLOW", 0)
FOLDER = os.O_RDONLY | sum(getattr(os, name, 0) for name in ("O_PATH", "O_DIRECTORY", "O_CLOEXEC"))


class ProjectFile(str):
    """A file that a recipe names: the text is what messages show, ``parts`` lead from the project's folder to it."""

    root: str
    parts: tuple[str, ...]

    @property
    def ending(self) -> str:
        """The ending of the file's own name, in small letters."""
        return os.path.splitext(self.parts[-1])[1].lower() if self.parts else ""

    @property
    def real(self) -> str:
        """The path of the file that was checked, without links."""
        return os.path.join(self.root, *self.parts)


class IrregularFile(OSError):
    """A folder, a pipe or a device; ``strerror`` says which."""


class LeavesProject(ValueError):
    """A path leads out of the project."""


def inside(root: str, path: str, shown: str) -> ProjectFile:
    """Return the file that a path leads to, links followed, if it lies in the folder ``root`` (itself resolved).

    Raises:
        LeavesProject: it does not.
        ValueError: it is not a path.
    """
    real = os.path.realpath(path)
    try:
        outside = os.path.commonpath([real, root]) != root
    except ValueError:  # another drive
        outside = True
    if outside:
        raise LeavesProject(path)
    file = ProjectFile(shown)
    relative = os.path.relpath(real, root)
    file.root, file.parts = root, () if relative == os.curdir else tuple(relative.split(os.sep))
    return file


def project_of(folder: str) -> str:
    """Return the nearest folder at or above ``folder`` that is a project's; ``folder`` itself where there is none."""
    real = os.path.realpath(folder)
    # As the path was typed first: a link inside a project must not move its bounds.
    project = _nearest(os.path.abspath(folder)) or _nearest(real)
    return os.path.realpath(project) if project else real


def _nearest(folder: str) -> str | None:
    while (above := os.path.dirname(folder)) != folder:
        if any(os.path.exists(os.path.join(folder, marker)) for marker in _MARKERS) and _may_be_a_project(folder):
            return folder
        folder = above
    return None  # the root of a file system holds everything


def _may_be_a_project(folder: str) -> bool:
    """Return whether a folder is neither somebody's home, with its dotfiles, nor one that everybody writes to."""
    return os.path.realpath(folder) not in _homes() and not os.stat(folder).st_mode & stat.S_ISVTX


def _homes() -> set[str]:
    homes = {os.path.expanduser("~")}
    with contextlib.suppress(ImportError, KeyError):  # no such table on Windows; a container's user may not be in it
        import pwd

        homes.add(pwd.getpwuid(os.getuid()).pw_dir)
    return {os.path.realpath(home) for home in homes}


def ending(path: str) -> str:
    """Return the ending of a file's name, in small letters."""
    return path.ending if isinstance(path, ProjectFile) else os.path.splitext(path)[1].lower()


def open_regular(path: str) -> IO[bytes]:
    """Return a regular file opened for reading.

    Raises:
        OSError: it cannot be opened.
        IrregularFile: it is a folder, a pipe or a device.
        ValueError: it is not a path.
    """
    handle = _opened(path) if isinstance(path, ProjectFile) else os.open(path, _FLAGS)
    try:
        mode = os.fstat(handle).st_mode
        if not stat.S_ISREG(mode):
            raise IrregularFile(errno.EINVAL, "is a folder" if stat.S_ISDIR(mode) else "is not a regular file")
        return open(handle, "rb")
    except BaseException:
        os.close(handle)
        raise


def _opened(path: ProjectFile) -> int:
    try:
        return _step_by_step(path) if os.open in os.supports_dir_fd and NO_LINK else _compared(path)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise OSError(error.errno, "a link took its place after it was checked") from None
        raise


def _step_by_step(path: ProjectFile) -> int:
    *folders, last = path.parts or (".",)
    handle = os.open(path.root, FOLDER)
    try:
        for name in folders:
            inner = os.open(name, FOLDER | NO_LINK, dir_fd=handle)
            os.close(handle)
            handle = inner
        return os.open(last, _FLAGS | NO_LINK, dir_fd=handle)
    finally:
        os.close(handle)


def _compared(path: ProjectFile) -> int:
    """Return the file opened by its resolved path, where folders cannot be opened: it must still be what is there."""
    real = path.real
    handle = os.open(real, _FLAGS)
    try:
        same = os.path.realpath(real) == real and os.path.samestat(os.fstat(handle), os.lstat(real))
    except BaseException:
        os.close(handle)
        raise
    if not same:
        os.close(handle)
        raise OSError(errno.ELOOP, "")
    return handle


@contextlib.contextmanager
def discreetly(path: str) -> Iterator[None]:
    """Let no error quote what stands in a file that a recipe names: whoever sees the error may not see the file."""
    try:
        yield
    except FileError as error:
        if isinstance(path, ProjectFile):
            raise SpecError(error.discreet, error.hint if error.discreet == error.message else None) from None
        raise
