"""What is asked: a command line, the files that it reads and its environment."""

import base64
import hashlib
import json
import shlex
from collections.abc import Mapping
from typing import Any, NamedTuple

NO_FILES: Mapping[str, bytes] = {}
NO_ENVIRONMENT: Mapping[str, str] = {}


class Question(NamedTuple):
    """``quick`` says whether the short test may ask it."""

    argv: tuple[str, ...]
    files: Mapping[str, bytes] = NO_FILES
    env: Mapping[str, str] = NO_ENVIRONMENT
    quick: bool = True

    @property
    def id(self) -> str:
        """A short name that changes with what is asked and with nothing else."""
        text = json.dumps([self.argv, _files(self), sorted(self.env.items())])
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:10]

    @property
    def command(self) -> str:
        """The first word, or what stands for it."""
        return self.argv[0] if self.argv and not self.argv[0].startswith("-") else "(none)"

    @property
    def line(self) -> str:
        """The command line, as one would type it."""
        return shlex.join((*(f"{name}={value}" for name, value in sorted(self.env.items())), "dpcalc", *self.argv))


def as_data(question: Question) -> dict[str, Any]:
    """Return the question as a worker reads it and a recording keeps it."""
    return {"argv": list(question.argv), "files": dict(_files(question)), "env": dict(question.env)}


def _files(question: Question) -> list[tuple[str, str]]:
    return [(name, base64.b64encode(content).decode()) for name, content in sorted(question.files.items())]
