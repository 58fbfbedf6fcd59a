"""Work spread over workers that nobody here controls: sent, awaited, checked, sent again, and never taken on trust.

`spread` is the one way from pieces of work to their answers. It knows nothing of recipes: a `Piece` has a document to
send, and says whether a text answers it. Workers are whatever runs a function of a module on a text: processes,
threads, or any `concurrent.futures.Executor` (`through`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from dpcalc.errors import DpcalcError, Stopped, WorkerDied, WorkerLost

if TYPE_CHECKING:
    from concurrent.futures import Executor, Future

_LOOK = 2.0  # seconds without an answer after which it is asked anew whether workers are there


class Piece:
    """A piece of work.

    Attributes:
        document: what is sent, a text.
    """

    document: str

    def read(self, text: str) -> Any:
        """Return the answer that a text is; raise any error where it is none."""
        raise NotImplementedError

    def after(self, answer: Any) -> Piece | None:
        """Return what an answer left undone: nothing, unless a piece says otherwise."""
        return None

    def halves(self) -> list[Piece]:
        """Return what it is divided into to find the part that ends its worker: itself alone, where it is one part."""
        return [self]

    def stopped(self, why: DpcalcError) -> Any:
        """Return the answer to a piece of one part whose computation was ended on purpose."""
        raise NotImplementedError


Submit = Callable[[Piece], "Future[str]"]
"""What sends a piece to a worker."""


def through(executor: Executor, function: Callable[[str], str]) -> Submit:
    """Return what sends the document of a piece to an executor, for a function that is known by its name."""
    return lambda piece: executor.submit(function, piece.document)


def spread(
    pieces: Iterator[Piece],
    submit: Submit,
    *,
    ahead: int | Callable[[], int],
    attempts: int = 1,
    patience: float | None = None,
) -> Iterator[tuple[Piece, Any]]:
    """Yield pieces and their answers as they come, in any order; what an answer leaves undone is sent anew.

    Args:
        pieces: the work, taken one by one as workers get free.
        submit: what sends one.
        ahead: how many are on their way at most; or what says so, where workers come and go. That is asked again
            while nothing is answered, and raises WorkerLost where nobody will.
        attempts: how often a piece is sent before it counts as lost.
        patience: seconds without any answer after which workers count as lost; None: forever.

    Raises:
        WorkerLost: a piece has no answer.
    """
    from concurrent.futures import FIRST_COMPLETED, wait  # a check of closed forms waits for nobody

    again: deque[tuple[Piece, int]] = deque()
    flying: dict[Future[str], tuple[Piece, int]] = {}
    idle = 0.0
    try:
        while True:
            most = ahead() if callable(ahead) else ahead
            while len(flying) < most:
                piece, tries = again.popleft() if again else (next(pieces, None), 1)
                if piece is None:
                    break
                flying[_sent(piece, submit)] = piece, tries
            if not flying:
                return
            waited = _LOOK if patience is None else min(_LOOK, patience - idle)
            done, _ = wait(flying, timeout=waited, return_when=FIRST_COMPLETED)
            idle = 0.0 if done else idle + waited
            if patience is not None and idle >= patience:
                raise WorkerLost(f"no worker answered within {patience:g} s", "allow a case more time with timeout")
            for future in done:
                piece, tries = flying.pop(future)
                answer, left = _answer(piece, future, tries, attempts)
                again.extend(left)
                if answer is not None:
                    yield piece, answer
    finally:
        for future in flying:
            future.cancel()


def _answer(piece: Piece, future: Future[str], tries: int, attempts: int) -> tuple[Any | None, list[tuple[Piece, int]]]:
    """Return the answer to a piece, None where there is none yet, and what is to be sent, for the how manieth time.

    Raises:
        WorkerLost: it was sent often enough.
    """
    try:
        failure = future.exception()  # read, not raised: the exit of a worker must not end this process
        answer = piece.read(future.result()) if failure is None else None
    except Exception as error:
        failure = error
    if isinstance(failure, WorkerDied):
        if len(halves := piece.halves()) > 1:
            return None, [(half, 1) for half in halves]
        return (piece.stopped(_fatal(failure, tries)), []) if tries >= attempts else (None, [(piece, tries + 1)])
    if failure is not None:
        if tries >= attempts:
            raise _lost(failure) from failure
        return None, [(piece, tries + 1)]
    rest = piece.after(answer)
    return answer, [(rest, 1)] if rest is not None else []


def _sent(piece: Piece, submit: Submit) -> Future[str]:
    try:
        return submit(piece)
    except Exception as error:
        raise _lost(error) from error


def _fatal(error: WorkerDied, tries: int) -> Stopped:
    often = "" if tries == 1 else f", {tries} times"
    return Stopped(f"the worker that computed it ended{often}: {error.message}", "see what ends it, such as its memory")


def _lost(error: BaseException) -> DpcalcError:
    said = " ".join(str(error).split()) or "no reason is given"
    return WorkerLost(
        f"a worker was lost: {type(error).__name__}: {said}", "no gate was passed on its word; see to it, and run again"
    )
