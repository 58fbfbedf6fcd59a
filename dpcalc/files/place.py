"""Places of errors in files, and the files that are opened: inputs of recipes inside their project, and outputs.

A recipe reads only files inside its project. Their path is resolved once. Then it is opened from the project's folder
downwards, one part at a time, and no part may be a link: the file that was checked is the file that is opened, whatever
happens in between. A hard link looks like the file itself, but whoever can make one inside the project can already read
its target.

An output is a name in a folder that is entered from a trusted one, part by part, through no link. A checkout may have a
link under the name of a report, or of a folder above it. The user of dpcalc chose the name; the link must not choose
another file. So every folder is opened inside the one above it, and whatever has the last name is replaced, never
followed.

The trusted folders are the current folder, for relative paths and absolute ones that name it, and the root of the file
system, for all other absolute paths. Links in the root itself are followed, such as ``/tmp`` and ``/var`` of macOS: no
checkout can put one there.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import re
import stat
from collections.abc import Iterable, Iterator
from typing import IO, NamedTuple

from dpcalc.errors import SpecError
from dpcalc.files import STANDARD_STREAM

_COMPARED = 200  # names among which similar spellings are looked for


def shown_path(path: str) -> str:
    """Return the path for messages: one line, without control characters."""
    return path if path.isprintable() else ascii(path)


class Place(NamedTuple):
    """A place in a file; line 0 if only the file is known.

    As text it is one line without control characters; standard input as a whole is ``<stdin>``.
    """

    file: str
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        file = shown_path(self.file)
        if not self.line:
            return "<stdin>" if file == STANDARD_STREAM else file
        return f"{file}:{self.line}:{self.column}" if self.column else f"{file}:{self.line}"

    def error(self, what: str, hint: str | None = None, *, discreet: str | None = None) -> FileError:
        """Return the error at this place; see `FileError`."""
        return FileError(self, what, hint, discreet)

    def refuse(self, *refusals: tuple[object, str, str | None]) -> None:
        """Raise the error of the first refusal (condition, what is wrong, hint) whose condition holds."""
        for holds, what, hint in refusals:
            if holds:
                raise self.error(what, hint)

    @contextlib.contextmanager
    def blamed(self, prefix: str = "") -> Iterator[None]:
        """Give refusals of a value the place of this value, unless they have one."""
        try:
            yield
        except FileError:
            raise
        except SpecError as error:
            raise self.error(f"{prefix}{error.message}", error.hint) from None


class FileError(SpecError):
    """Something wrong at a place in a file.

    Attributes:
        place: where it is.
        what: what is wrong; the message is the place and this text.
        discreet: the message without a quotation from the file.
    """

    def __init__(self, place: Place, what: str, hint: str | None = None, discreet: str | None = None) -> None:
        super().__init__(f"{place}: {what}", hint)
        self.place, self.what = place, what
        self.discreet = f"{place}: {what if discreet is None else discreet}"
        self._unquoted = discreet

    def __reduce__(self) -> tuple[type[FileError], tuple[Place, str, str | None, str | None]]:
        """Return how to rebuild it in another process."""
        return type(self), (self.place, self.what, self.hint, self._unquoted)


def clipped(text: str) -> str:
    """Return a text quoted for messages."""
    return repr(text if len(text) <= 60 else text[:57] + "...")


def near(word: str, names: Iterable[str]) -> str:
    """Return ``did you mean ...?``, or the list of names; only the first 200 are compared."""
    import difflib  # a hint is rare

    listed = list(itertools.islice(names, _COMPARED + 1))
    alike = difflib.get_close_matches(word[:60], listed, n=1)
    shown = ", ".join(listed[:_COMPARED]) + (", ..." if len(listed) > _COMPARED else "")
    return f"did you mean {alike[0]}?" if alike else f"known here: {shown}"


_MARKERS = (".git", "pyproject.toml")
# Not blocking, so that opening a pipe without a writer does not wait.
_FLAGS = os.O_RDONLY | sum(getattr(os, name, 0) for name in ("O_NONBLOCK", "O_NOCTTY", "O_CLOEXEC", "O_BINARY"))
NO_LINK = getattr(os, "O_NOFOLLOW", 0)
FOLDER = os.O_RDONLY | sum(getattr(os, name, 0) for name in ("O_PATH", "O_DIRECTORY", "O_CLOEXEC"))


class ProjectFile(str):
    """A file that a recipe names: the text is for messages, ``parts`` lead from the project's folder to it."""

    root: str
    parts: tuple[str, ...]

    @property
    def ending(self) -> str:
        """The ending of the file's own name, in lower case."""
        return os.path.splitext(self.parts[-1])[1].lower() if self.parts else ""

    @property
    def real(self) -> str:
        """The path of the file that was checked, without links."""
        return os.path.join(self.root, *self.parts)

    def open(self) -> int:
        """Return the descriptor of the file that was checked.

        Raises:
            OSError: it cannot be opened, or is not the file that was checked.
        """
        try:
            return self._step_by_step() if os.open in os.supports_dir_fd and NO_LINK else self._compared()
        except OSError as error:
            if error.errno == errno.ELOOP:
                raise OSError(error.errno, "a link took its place after it was checked") from None
            raise

    def _step_by_step(self) -> int:
        *folders, last = self.parts or (".",)
        handle = os.open(self.root, FOLDER)
        try:
            for name in folders:
                inner = os.open(name, FOLDER | NO_LINK, dir_fd=handle)
                os.close(handle)
                handle = inner
            return os.open(last, _FLAGS | NO_LINK, dir_fd=handle)
        finally:
            os.close(handle)

    def _compared(self) -> int:
        """Return the file opened by its resolved path, for systems that cannot open folders: it must still be there."""
        handle = os.open(self.real, _FLAGS)
        try:
            same = os.path.realpath(self.real) == self.real
            if same and os.path.samestat(os.fstat(handle), os.lstat(self.real)):
                return handle
            raise OSError(errno.ELOOP, "")
        except BaseException:
            os.close(handle)
            raise


class IrregularFile(OSError):
    """A folder, a pipe or a device; ``strerror`` says which."""


class LeavesProject(ValueError):
    """A path leads out of the project."""


def inside(root: str, path: str, shown: str) -> ProjectFile:
    """Return the file that a path leads to, following links, if it is in the folder ``root`` (itself resolved).

    Raises:
        LeavesProject: it is not.
        ValueError: the text is not a path.
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
    """Return the nearest folder at or above ``folder`` that is a project; ``folder`` itself if there is none."""
    real = os.path.realpath(folder)
    # The typed path comes first: a link inside a project must not move its bounds.
    project = _nearest(os.path.abspath(folder)) or _nearest(real)
    return os.path.realpath(project) if project else real


def _nearest(folder: str) -> str | None:
    while (above := os.path.dirname(folder)) != folder:
        if any(_is_marked(folder, marker) for marker in _MARKERS) and _may_be_a_project(folder):
            return folder
        folder = above
    return None  # the root of a file system contains everything


def _is_marked(folder: str, marker: str) -> bool:
    """Return whether a folder has this marker, and not one that another user planted where everybody may write."""
    try:
        owner = os.lstat(os.path.join(folder, marker)).st_uid
    except OSError:
        return False
    return owner in (0, getattr(os, "getuid", int)(), os.stat(folder).st_uid)  # on Windows all are 0


def _may_be_a_project(folder: str) -> bool:
    """Return whether a folder is neither somebody's home, with its dotfiles, nor shared (sticky, such as ``/tmp``)."""
    return os.path.realpath(folder) not in _homes() and not os.stat(folder).st_mode & stat.S_ISVTX


def _homes() -> set[str]:
    homes = {os.path.expanduser("~")}
    with contextlib.suppress(ImportError, KeyError):  # no such table on Windows; a container's user may not be in it
        import pwd

        homes.add(pwd.getpwuid(os.getuid()).pw_dir)
    return {os.path.realpath(home) for home in homes}


def ending(path: str) -> str:
    """Return the ending of a file's name, in lower case."""
    return path.ending if isinstance(path, ProjectFile) else os.path.splitext(path)[1].lower()


def open_regular(path: str) -> IO[bytes]:
    """Return a regular file opened for reading.

    Raises:
        OSError: it cannot be opened.
        IrregularFile: it is a folder, a pipe or a device.
        ValueError: it is not a path.
    """
    handle = path.open() if isinstance(path, ProjectFile) else os.open(path, _FLAGS)
    try:
        mode = os.fstat(handle).st_mode
        if not stat.S_ISREG(mode):
            raise IrregularFile(errno.EINVAL, "is a folder" if stat.S_ISDIR(mode) else "is not a regular file")
        return open(handle, "rb")
    except BaseException:
        os.close(handle)
        raise


@contextlib.contextmanager
def discreetly(path: str) -> Iterator[None]:
    """Let no error quote a file that a recipe names: its readers may not be allowed to see the file."""
    try:
        yield
    except FileError as error:
        if isinstance(path, ProjectFile):
            raise SpecError(error.discreet, error.hint if error.discreet == error.message else None) from None
        raise


_SEPARATORS = re.compile(f"[{re.escape(os.sep + (os.altsep or ''))}]+")
_GIT = ".git"
_EXECUTE = 0o111
_JUNCTION = 0xA0000003  # IO_REPARSE_TAG_MOUNT_POINT of Windows: a link to a folder, not a symbolic link
_HANDLES = bool(NO_LINK) and {os.open, os.stat, os.unlink, os.rename} <= os.supports_dir_fd


class Unwritable(OSError):
    """A place where nothing may be written; ``strerror`` says why, and ``cure`` what to do."""

    def __init__(self, why: str, cure: str | None = None) -> None:
        super().__init__(errno.EPERM, why)
        self.cure = cure


class Folder:
    """A folder that is held open while something is written in it, so that no link can replace it.

    If the system cannot hold it open, as on Windows, names are looked up by its path.
    """

    def __init__(self, path: str, handle: int | None) -> None:
        self._path, self._handle = path, handle

    @classmethod
    def trusted(cls, path: str) -> Folder:
        """Return a folder entered by its name, following links."""
        return cls(path, os.open(path, FOLDER) if _HANDLES else None)

    def close(self) -> None:
        """Close the folder."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None

    def at(self, name: str) -> tuple[str, int | None]:
        """Return the path and the ``dir_fd`` with which functions of `os` find a name in this folder."""
        return (os.path.join(self._path, name), None) if self._handle is None else (name, self._handle)

    def status(self, name: str) -> os.stat_result | None:
        """Return the status of a name, of a link itself; None if there is no such name."""
        path, handle = self.at(name)
        try:
            return os.stat(path, dir_fd=handle, follow_symlinks=False)
        except FileNotFoundError:
            return None

    def open(self, name: str, flags: int, mode: int = 0o600) -> int:
        """Return the descriptor of a file that is no link."""
        path, handle = self.at(name)
        return os.open(path, flags | NO_LINK | getattr(os, "O_CLOEXEC", 0), mode, dir_fd=handle)

    def inner(self, name: str, *, links: bool = False) -> Folder:
        """Return a folder inside this one; it may be a link if ``links``.

        Raises:
            Unwritable: it is a link, or a repository of Git.
        """
        inner = name if self._path == os.curdir else os.path.join(self._path, name)
        status = self.status(name)
        if not links and status is not None and _is_link(status):
            raise Unwritable(f"{inner} is a link", "remove the link, or name the folder that it leads to")
        self._refuse_git(name, status)
        path, handle = self.at(name)
        if handle is None:
            if status is not None and not os.path.isdir(path):
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
            return Folder(inner, None)
        return Folder(inner, os.open(path, FOLDER | (0 if links else NO_LINK), dir_fd=handle))

    def replace(self, draft: str, name: str) -> None:
        """Rename a file to replace another file or a link."""
        (source, handle), (target, _) = self.at(draft), self.at(name)
        os.replace(source, target, src_dir_fd=handle, dst_dir_fd=handle)

    def remove(self, name: str) -> None:
        """Remove a file if it is there."""
        path, handle = self.at(name)
        with contextlib.suppress(OSError):
            os.unlink(path, dir_fd=handle)

    def tried(self) -> int:
        """Return the mode of a trial file that is created here and removed.

        Raises:
            OSError: none can be created.
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

    def _refuse_git(self, name: str, status: os.stat_result | None) -> None:
        """Refuse the folder, or file, of a Git repository, by its name or by any alias in the file system."""
        git = self.status(_GIT) if status is not None else None
        if name.casefold() == _GIT or (git is not None and status is not None and os.path.samestat(git, status)):
            raise Unwritable("Git keeps its repository there", None)


class Target:
    """The name in a folder that an output goes to, and what has this name now.

    Raises:
        Unwritable: it is a program or a repository of Git.
        OSError: it is a folder, or cannot be inspected.
    """

    def __init__(self, folder: Folder, name: str) -> None:
        self.folder, self.name = folder, name
        status = folder.status(name)
        folder._refuse_git(name, status)
        self.is_link = status is not None and _is_link(status)
        if status is not None and stat.S_ISDIR(status.st_mode):
            raise _is_folder()
        self.file = status if status is not None and stat.S_ISREG(status.st_mode) else None
        # A file system without modes, such as a mounted Windows disk, may mark every file as executable.
        if self.file is not None and self.file.st_mode & _EXECUTE and not folder.tried() & _EXECUTE:
            raise Unwritable("it is a program")
        self.is_device = status is not None and self.file is None and not self.is_link

    @property
    def mode(self) -> int | None:
        """The permissions of the file to replace; None if there is none."""
        return None if self.file is None else stat.S_IMODE(self.file.st_mode) & 0o666

    def open_device(self) -> int:
        """Return the descriptor of a device or a pipe, opened for writing.

        Raises:
            OSError: it cannot be opened, or a file took its place.
        """
        handle = self.folder.open(self.name, os.O_WRONLY | getattr(os, "O_NOCTTY", 0))
        if stat.S_ISREG(os.fstat(handle).st_mode):
            os.close(handle)
            raise Unwritable("a file took its place")
        return handle

    def open_to_add(self) -> int:
        """Return the descriptor of a file to read and write in place; it is created if missing.

        Raises:
            Unwritable: it is a link, no regular file, or a file with other names, which would change too.
            OSError: it cannot be opened.
        """
        self.refuse_link()
        handle = self.folder.open(self.name, os.O_RDWR | os.O_CREAT)
        status = os.fstat(handle)
        if stat.S_ISREG(status.st_mode) and status.st_nlink == 1:
            return handle
        os.close(handle)
        raise Unwritable("it is no regular file" if status.st_nlink == 1 else "the file has other names as well")

    def refuse_link(self) -> None:
        """Raise Unwritable if a link or one of several names would be replaced while the file stays unchanged."""
        if self.is_link:
            raise Unwritable("it is a link", "name the file that it leads to")
        if self.file is not None and self.file.st_nlink > 1:
            raise Unwritable("the file has other names as well", "remove them: they would keep what it is now")

    def refuse_unwritable(self) -> None:
        """Raise OSError if it is clear without writing that nothing can be written."""
        if self.is_device:
            path, handle = self.folder.at(self.name)
            if not os.access(path, os.W_OK, dir_fd=handle):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        else:
            self.folder.tried()


@contextlib.contextmanager
def target(path: str) -> Iterator[Target]:
    """Pass the target of a path, with its folder held open.

    Raises:
        Unwritable: nothing may be written there, or a folder of the path is a link.
        OSError: a folder of the path is missing or cannot be entered.
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
    """Return a random name that no file has."""
    return f".dpcalc-{os.urandom(8).hex()}"


def _start(path: str) -> tuple[str, list[str]]:
    """Return the trusted folder where a path begins, and the names from there to its end.

    Raises:
        Unwritable: it begins inside a repository of Git.
    """
    drive, rest = os.path.splitdrive(path)
    current = os.environ.get("PWD", "").rstrip(os.sep)
    if current and path.startswith(current + os.sep):
        with contextlib.suppress(OSError):
            if os.path.samefile(current, os.curdir):  # the current folder, as the shell names it
                drive, rest = "", path[len(current) :].lstrip(os.sep)
    root = drive + os.sep if rest[:1] in (os.sep, os.altsep) else drive or os.curdir
    if root == os.curdir and any(name.casefold() == _GIT for name in _SEPARATORS.split(os.getcwd())):
        raise Unwritable("Git keeps its repository there")
    *folders, last = _SEPARATORS.split(rest)
    return root, [*(name for name in folders if name not in ("", os.curdir)), last]


def _is_link(status: os.stat_result) -> bool:
    return stat.S_ISLNK(status.st_mode) or getattr(status, "st_reparse_tag", 0) == _JUNCTION


def _is_folder() -> OSError:
    return IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
