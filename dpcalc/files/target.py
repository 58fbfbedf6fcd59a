"""Where an output goes: a name in a folder that is entered from a trusted one, part by part, through no link.

A checkout may hold a link under the name of a report, or of a folder above it. Who runs dpcalc chose the name; the link
must not choose another file. So every folder is opened inside the one above it, and what stands under the last name is
replaced, never followed.

Trusted are the current folder, where a relative path begins and an absolute one that names it, and the root of the
file system, where every other absolute path begins. Links that stand in the root itself are followed, such as ``/tmp``
and ``/var`` of macOS: no checkout can put one there.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import stat
from collections.abc import Iterator

from dpcalc.files.paths import FOLDER, NO_LINK

_SEPARATORS = re.compile(f"[{re.escape(os.sep + (os.altsep or ''))}]+")
_GIT = ".git"
_EXECUTE = 0o111
_JUNCTION = 0xA0000003  # IO_REPARSE_TAG_MOUNT_POINT of Windows: a link to a folder that is no symbolic link
_HANDLES = bool(NO_LINK) and {os.open, os.stat, os.unlink, os.rename} <= os.supports_dir_fd


class Unwritable(OSError):
    """A place where nothing is written; ``strerror`` says why, and ``cure`` what to do."""

    def __init__(self, why: str, cure: str | None = None) -> None:
        super().__init__(errno.EPERM, why)
        self.cure = cure


class Folder:
    """A folder that is held open while something is written in it, so that no link can take its place.

    Where the system cannot hold it open, as on Windows, names are looked up by its path instead.
    """

    def __init__(self, path: str, handle: int | None) -> None:
        self._path, self._handle = path, handle

    @classmethod
    def trusted(cls, path: str) -> Folder:
        """Return a folder that is entered as it is named, links included."""
        return cls(path, os.open(path, FOLDER) if _HANDLES else None)

    def close(self) -> None:
        """Let the folder go."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None

    def at(self, name: str) -> tuple[str, int | None]:
        """Return the path and the ``dir_fd`` by which functions of `os` find a name of this folder."""
        return (os.path.join(self._path, name), None) if self._handle is None else (name, self._handle)

    def status(self, name: str) -> os.stat_result | None:
        """Return what stands under a name, of a link itself; None where nothing does."""
        path, handle = self.at(name)
        try:
            return os.stat(path, dir_fd=handle, follow_symlinks=False)
        except FileNotFoundError:
            return None

    def open(self, name: str, flags: int, mode: int = 0o600) -> int:
        """Return the descriptor of a file, which is no link."""
        path, handle = self.at(name)
        return os.open(path, flags | NO_LINK | getattr(os, "O_CLOEXEC", 0), mode, dir_fd=handle)

    def inner(self, name: str, *, links: bool = False) -> Folder:
        """Return a folder inside this one; one behind a link where ``links`` says so.

        Raises:
            Unwritable: it is a link, or where Git keeps a repository.
        """
        inner = name if self._path == os.curdir else os.path.join(self._path, name)
        found = self.status(name)
        if not links and found is not None and _is_link(found):
            raise Unwritable(f"{inner} is a link", "remove the link, or name the folder that it leads to")
        self._refuse_git(name, found)
        path, handle = self.at(name)
        if handle is None:
            if found is not None and not os.path.isdir(path):
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
            return Folder(inner, None)
        return Folder(inner, os.open(path, FOLDER | (0 if links else NO_LINK), dir_fd=handle))

    def replace(self, draft: str, name: str) -> None:
        """Give a file the name of another, or of a link, which it replaces."""
        (source, handle), (target, _) = self.at(draft), self.at(name)
        os.replace(source, target, src_dir_fd=handle, dst_dir_fd=handle)

    def remove(self, name: str) -> None:
        """Remove a file if it is there."""
        path, handle = self.at(name)
        with contextlib.suppress(OSError):
            os.unlink(path, dir_fd=handle)

    def tried(self) -> int:
        """Return the mode of a file that is made here, and removed.

        Raises:
            OSError: none can be made.
        """
        draft = draft_name()
        try:
            handle = self.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
            try:
                return os.fstat(handle).st_mode
            finally:
                os.close(handle)
        finally:
            self.remove(draft)

    def _refuse_git(self, name: str, found: os.stat_result | None) -> None:
        """Refuse the folder, or file, that leads to a repository: by its name, and by any other that the system has."""
        git = self.status(_GIT) if found is not None else None
        if name.casefold() == _GIT or (git is not None and found is not None and os.path.samestat(git, found)):
            raise Unwritable("Git keeps its repository there", None)


class Target:
    """The name in a folder that an output goes to, and what stands there.

    Raises:
        Unwritable: nothing is written there: a program, a repository of Git.
        OSError: it is a folder, or cannot be looked at.
    """

    def __init__(self, folder: Folder, name: str) -> None:
        self.folder, self.name = folder, name
        found = folder.status(name)
        folder._refuse_git(name, found)
        self.is_link = found is not None and _is_link(found)
        if found is not None and stat.S_ISDIR(found.st_mode):
            raise _is_folder()
        self.file = found if found is not None and stat.S_ISREG(found.st_mode) else None
        # A file system without modes, such as a mounted disk of Windows, may call every file a program.
        if self.file is not None and self.file.st_mode & _EXECUTE and not folder.tried() & _EXECUTE:
            raise Unwritable("it is a program")
        self.is_device = found is not None and self.file is None and not self.is_link

    @property
    def mode(self) -> int | None:
        """The permissions of the file that is replaced; None where there is none."""
        return None if self.file is None else stat.S_IMODE(self.file.st_mode) & 0o666

    def open_device(self) -> int:
        """Return the descriptor of a device or a pipe, to be written to.

        Raises:
            OSError: it cannot be opened, or a file took its place.
        """
        handle = self.folder.open(self.name, os.O_WRONLY | getattr(os, "O_NOCTTY", 0))
        if stat.S_ISREG(os.fstat(handle).st_mode):
            os.close(handle)
            raise Unwritable("a file took its place")
        return handle

    def open_to_add(self) -> int:
        """Return the descriptor of a file that is read and written in place; it is made where there is none.

        Raises:
            Unwritable: it is a link, no regular file, or a file with other names, which would change as well.
            OSError: it cannot be opened.
        """
        self.refuse_link()
        handle = self.folder.open(self.name, os.O_RDWR | os.O_CREAT)
        found = os.fstat(handle)
        if stat.S_ISREG(found.st_mode) and found.st_nlink == 1:
            return handle
        os.close(handle)
        raise Unwritable("it is no regular file" if found.st_nlink == 1 else "the file has other names as well")

    def refuse_link(self) -> None:
        """Raise Unwritable where a link would be replaced, and the file that it leads to would stay as it is."""
        if self.is_link:
            raise Unwritable("it is a link", "name the file that it leads to")

    def refuse_unwritable(self) -> None:
        """Raise OSError where it can be seen without writing that nothing can be written."""
        if self.is_device:
            path, handle = self.folder.at(self.name)
            if not os.access(path, os.W_OK, dir_fd=handle):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        else:
            self.folder.tried()


@contextlib.contextmanager
def target(path: str) -> Iterator[Target]:
    """Pass the place that a path stands for, its folder held open.

    Raises:
        Unwritable: nothing is written there, or a folder of the path is a link.
        OSError: a folder of the path is missing, or cannot be entered.
        ValueError: it is no path.
    """
    start, names = _start(path)
    if not names or names[-1] in ("", os.curdir, os.pardir):
        raise _is_folder() if path else FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
    folder = Folder.trusted(start)
    try:
        for number, name in enumerate(names[:-1]):
            outer, folder = folder, folder.inner(name, links=start == os.sep and number == 0)
            outer.close()
        yield Target(folder, names[-1])
    finally:
        folder.close()


def draft_name() -> str:
    """Return a name that no file has."""
    return f".dpcalc-{os.urandom(8).hex()}"


def _start(path: str) -> tuple[str, list[str]]:
    """Return the trusted folder that a path begins in, and the names that lead from there to its end.

    Raises:
        Unwritable: it begins inside a repository of Git.
    """
    below = _below_current(path)
    drive, rest = ("", below) if below is not None else os.path.splitdrive(path)
    root = drive + os.sep if rest[:1] in (os.sep, os.altsep) else drive or os.curdir
    if root == os.curdir and any(name.casefold() == _GIT for name in _SEPARATORS.split(os.getcwd())):
        raise Unwritable("Git keeps its repository there")
    *folders, last = _SEPARATORS.split(rest)
    return root, [*(name for name in folders if name not in ("", os.curdir)), last]


def _below_current(path: str) -> str | None:
    """Return a path from the current folder on, where it names that folder as the shell does."""
    current = os.environ.get("PWD", "").rstrip(os.sep)
    if not current or not path.startswith(current + os.sep):
        return None
    with contextlib.suppress(OSError):
        if os.path.samefile(current, os.curdir):
            return path[len(current) :].lstrip(os.sep)
    return None


def _is_link(found: os.stat_result) -> bool:
    return stat.S_ISLNK(found.st_mode) or getattr(found, "st_reparse_tag", 0) == _JUNCTION


def _is_folder() -> OSError:
    return IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
