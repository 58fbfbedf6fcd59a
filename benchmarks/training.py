"""Training, beside a numpy idiom, numba, JAX, torch and Opacus where they are installed, and beside its own noise.

    OPENBLAS_NUM_THREADS=1 python benchmarks/training.py [--quick] [--cpu] [--file ROWS]

Logistic regression, Gaussian noise, rows of norm just below 1, a ball of radius 1. All in one process, interleaved,
the order reversed every other repeat, medians of 7 repeats (3 with --quick). What is timed first agrees with a
reference loop on the same noise to 1e-12 (Opacus draws its own: its step without noise is compared). Ratios travel
from machine to machine, microseconds do not. On a machine that others use, --cpu measures the processor time of this
process in place of the clock, which says nothing of two threads. The ensemble's two processes are also measured by
the processor time of the busier one over that of one process, which is the share where nobody else is on the machine.
With --file ROWS a pass over a file of so many records is timed alone (10^7 take 4 GB on the disk).
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy loads: its small products are slower on more

import importlib
import math
import resource
import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np  # noqa: TID253

from dpcalc.errors import DpcalcError
from dpcalc.model.loss import of
from dpcalc.model.run import describe
from dpcalc.training.data import bounds, ranges, tables
from dpcalc.training.run import ensemble, kernel, single
from dpcalc.training.run.exact_sums import ExactSums
from dpcalc.training.run.plan import Plan, plan
from dpcalc.training.run.problem import Problem
from dpcalc.training.run.rounding import Rounding

ETA, SIGMA, RADIUS = 0.1, 1.0, 1.0
HELD = RADIUS * (1.0 - 1e-12)
SEED = 7
Timed = dict[str, Callable[[], Any]]


def data(rows: int, columns: int) -> Problem:
    """Return separable data of unit norm, but for a little room."""
    rng = np.random.default_rng(1)
    x = rng.standard_normal((rows, columns))
    x /= np.linalg.norm(x, axis=1)[:, np.newaxis] * (1.0 + 1e-9)
    return Problem(
        x, np.where(x[:, 0] + 0.3 * rng.standard_normal(rows) > 0.0, 1.0, -1.0), of("logistic", feature_bound=1.0)
    )


def planned(algorithm: str, problem: Problem, **given: Any) -> Plan:
    """Return the plan of an algorithm with the constants of the loss."""
    loss, rows = problem.loss, problem.shape[0]
    values = {"records": rows, "lipschitz": loss.lipschitz, "smoothness": loss.smoothness, "step_size": ETA}
    return plan(describe(algorithm, {**values, "noise_std": SIGMA, "radius": RADIUS, **given}), *problem.shape)


class Given(NamedTuple):
    """What a run with the seed draws: the rows of its steps, end to end, and its noise."""

    rows: np.ndarray
    z: np.ndarray


def drawn(rows: int, columns: int, batch: int, epochs: int) -> Given:
    """Return the draws: the data's order where ``epochs`` is 0, else a fresh one for every pass."""
    rng = kernel.seeded(SEED).generator
    steps = rows // batch
    if not epochs:
        return Given(np.arange(rows), rng.standard_normal((steps, columns)))
    passes = [(rng.permutation(rows), rng.standard_normal((steps, columns))) for _ in range(epochs)]
    return Given(np.concatenate([order for order, _ in passes]), np.concatenate([z for _, z in passes]))


def reference(x: np.ndarray, y: np.ndarray, given: Given, batch: int, radius: float = HELD) -> np.ndarray:
    """Return the last iterate: the loop that all must agree with."""
    w = np.zeros(x.shape[1])
    for t, z in enumerate(given.z):
        rows = given.rows[t * batch : (t + 1) * batch]
        margin = y[rows] * (x[rows] @ w)
        gradient = (-(y[rows] / (1.0 + np.exp(margin))) @ x[rows]) / batch
        w = w - ETA * (gradient + SIGMA * z)
        size = math.sqrt(w @ w)
        w = w * (radius / size) if size > radius else w
    return w


def naive(x: np.ndarray, y: np.ndarray, batch: int, epochs: int) -> np.ndarray:
    """Return the same by the usual idiom: one step at a time, noise drawn where it is needed."""
    rng = np.random.Generator(np.random.SFC64(SEED))
    w = np.zeros(x.shape[1])
    for _ in range(max(1, epochs)):
        order = rng.permutation(len(x)) if epochs else np.arange(len(x))
        for first in range(0, len(x), batch):
            if batch == 1:
                xt, yt = x[order[first]], y[order[first]]
                gradient = -yt * xt / (1.0 + np.exp(yt * (xt @ w)))
            else:
                rows = order[first : first + batch]
                xb, yb = x[rows], y[rows]
                gradient = ((-yb / (1.0 + np.exp(yb * (xb @ w))))[:, np.newaxis] * xb).mean(axis=0)
            w = w - ETA * (gradient + SIGMA * rng.normal(size=len(w)))
            size = np.linalg.norm(w)
            if size > HELD:
                w = w * (HELD / size)
    return w


def terse(x: np.ndarray, y: np.ndarray, batch: int, epochs: int) -> np.ndarray:
    """As `naive` for batches, the mean gradient by one product."""
    rng = np.random.Generator(np.random.SFC64(SEED))
    w = np.zeros(x.shape[1])
    for _ in range(epochs):
        order = rng.permutation(len(x))
        for first in range(0, len(x), batch):
            rows = order[first : first + batch]
            xb, yb = x[rows], y[rows]
            gradient = (-yb / (1.0 + np.exp(yb * (xb @ w)))) @ xb / batch
            w = w - ETA * (gradient + SIGMA * rng.normal(size=len(w)))
            size = np.linalg.norm(w)
            if size > HELD:
                w = w * (HELD / size)
    return w


def numba_loop(x: np.ndarray, y: np.ndarray, batch: int) -> Callable[[], Any] | None:
    """Return the loop compiled by numba, its noise drawn beforehand by numpy in blocks, or None."""
    numba = imported("numba")
    if numba is None or batch != 1:
        return None

    @numba.njit(fastmath=False)  # type: ignore[untyped-decorator, unused-ignore]
    def steps(x: Any, y: Any, z: Any, w: Any) -> None:
        for t in range(len(x)):
            inner = 0.0
            for j in range(x.shape[1]):
                inner += x[t, j] * w[j]
            share = y[t] / (1.0 + math.exp(y[t] * inner))
            size = 0.0
            for j in range(x.shape[1]):
                w[j] += ETA * (share * x[t, j] - SIGMA * z[t, j])
                size += w[j] * w[j]
            if size > HELD * HELD:
                for j in range(x.shape[1]):
                    w[j] *= HELD / math.sqrt(size)

    def run() -> Any:
        rng, w = np.random.Generator(np.random.SFC64(SEED)), np.zeros(x.shape[1])
        for first in range(0, len(x), 1024):
            part = slice(first, first + 1024)
            steps(x[part], y[part], rng.standard_normal((len(x[part]), x.shape[1])), w)
        return w

    return run


def jax_scan(x: np.ndarray, y: np.ndarray, batch: int, epochs: int) -> Callable[[], Any] | None:
    """Return a compiled `lax.scan` on orders and noise drawn by numpy, or None."""
    jax = imported("jax")
    if jax is None:
        return None
    jax.config.update("jax_enable_x64", True)
    jnp = jax.numpy

    def step(w: Any, given: Any) -> Any:
        xb, yb, z = given
        gradient = -(yb / (1.0 + jnp.exp(yb * (xb @ w)))) @ xb / batch
        w = w - ETA * (gradient + SIGMA * z)
        return w * jnp.minimum(1.0, HELD / jnp.sqrt(w @ w)), None

    scan = jax.jit(lambda w, given: jax.lax.scan(step, w, given)[0])
    rows, columns = x.shape
    jx, jy = jnp.asarray(x), jnp.asarray(y)

    def run() -> Any:
        given = drawn(rows, columns, batch, epochs)
        order = given.rows.reshape(-1, batch)
        return np.asarray(scan(jnp.zeros(columns), (jx[order], jy[order], jnp.asarray(given.z))))

    return run


def torch_loop(x: np.ndarray, y: np.ndarray, batch: int) -> Callable[[], Any] | None:
    """Return a loop in torch with the gradient from autograd, or None."""
    torch = imported("torch")
    if torch is None:
        return None
    torch.set_num_threads(1)
    tx, ty = torch.from_numpy(x), torch.from_numpy(y)

    def run() -> Any:
        z = torch.from_numpy(drawn(*x.shape, batch, 0).z)
        w = torch.zeros(x.shape[1], dtype=torch.float64, requires_grad=True)
        for t in range(len(z)):
            part = slice(t * batch, (t + 1) * batch)
            loss = torch.nn.functional.softplus(-ty[part] * (tx[part] @ w)).mean()
            (gradient,) = torch.autograd.grad(loss, w)
            with torch.no_grad():
                w -= ETA * (gradient + SIGMA * z[t])
                size = w.norm()
                if size > HELD:
                    w *= HELD / size
        return w.detach().numpy()

    return run


def opacus_steps(x: np.ndarray, y: np.ndarray, batch: int, spread: float = SIGMA) -> Callable[[], Any] | None:
    """Return DP-SGD steps by Opacus on a linear layer (no projection, its own clipping and noise), or None."""
    torch, opacus = imported("torch"), imported("opacus")
    if torch is None or opacus is None:
        return None
    grad_sample = importlib.import_module("opacus.grad_sample")
    optimizers = importlib.import_module("opacus.optimizers")
    tx, ty = torch.from_numpy(x), torch.from_numpy(y)

    def run() -> Any:
        layer = torch.nn.Linear(x.shape[1], 1, bias=False, dtype=torch.float64)
        torch.nn.init.zeros_(layer.weight)
        model = grad_sample.GradSampleModule(layer)
        optimizer = optimizers.DPOptimizer(
            torch.optim.SGD(model.parameters(), lr=ETA), noise_multiplier=spread * batch, max_grad_norm=1.0,
            expected_batch_size=batch,
        )  # fmt: skip
        for first in range(0, len(x), batch):
            part = slice(first, first + batch)
            optimizer.zero_grad()
            torch.nn.functional.softplus(-ty[part] * model(tx[part])[:, 0]).mean().backward()
            optimizer.step()
        return layer.weight.detach().numpy()[0]

    return run


def imported(name: str) -> Any:
    """Return the module, or None where it is not installed."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return importlib.import_module(name)
    except ImportError:
        return None


def medians(timed: Timed, repeats: int) -> dict[str, float]:
    """Return seconds, the median over repeats whose order alternates."""
    now = time.process_time if "--cpu" in sys.argv else time.perf_counter
    found: dict[str, list[float]] = {name: [] for name in timed}
    for repeat in range(repeats):
        for name in list(timed)[:: 1 if repeat % 2 == 0 else -1]:
            began = now()
            timed[name]()
            found[name].append(now() - began)
    return {name: statistics.median(times) for name, times in found.items()}


def agree(name: str, found: Any, expected: np.ndarray) -> None:
    """Refuse to time what computes something else."""
    worst = float(np.max(np.abs(np.asarray(found) - expected)))
    if not worst <= 1e-12:
        raise SystemExit(f"{name} is {worst:.3g} off the reference")


def one_run(columns: int, batch: int, repeats: int) -> None:
    """Print the cost of a step of one run: a pass in the given order of single records, or passes in fresh orders."""
    rows, epochs = (20_000, 0) if batch == 1 else (6_400, 10)
    problem = data(rows, columns)
    x, y, _ = problem
    steps = rows // batch * max(1, epochs)
    ours = planned("shuffled-epochs", problem, epochs=epochs, batch_size=batch) if epochs else planned("pnsgd", problem)
    expected = reference(x, y, drawn(rows, columns, batch, epochs), batch)
    timed: Timed = {
        "dpcalc": lambda: single.train(ours, problem, kernel.seeded(SEED)).weights,
        "numpy, one step at a time": lambda: naive(x, y, batch, epochs),
    }
    if epochs:
        timed["numpy, gradient in one product"] = lambda: terse(x, y, batch, epochs)
    for name, made in (("numba", numba_loop(x, y, batch)), ("JAX scan", jax_scan(x, y, batch, epochs))):
        if made is not None:
            timed[name] = made
        elif imported(name.split()[0].lower()) is None:
            print(f"  ({name}: not installed)")
    for name, run in timed.items():
        agree(name, run(), expected)
    few = 40 * batch  # rows for what is slow
    slow = slow_ones(x[:few], y[:few], batch)
    extra: Timed = {
        "noise alone": lambda: kernel.seeded(SEED).generator.standard_normal((steps, columns)),
        "dpcalc, OS seed": lambda: single.train(ours, problem, kernel.from_os()),
        "dpcalc, sums rounded": lambda: single.train(ours, problem, kernel.seeded(SEED), rounding=Rounding(1e-10)),
    }
    try:
        kernel.secure()
        extra["dpcalc, secure"] = lambda: single.train(ours, problem, kernel.secure())
    except DpcalcError as error:
        print(f"  (secure: {error.message})")
    found = medians({**timed, **extra, **slow}, repeats)
    ours_step = found["dpcalc"] / steps
    print(f"one run, d = {columns}, batch {batch}: a step of dpcalc is {1e6 * ours_step:.2f} us")
    for name, seconds in found.items():
        each = seconds / (few // batch if name in slow else steps)
        print(f"  {name:31} {1e6 * each:9.2f} us   dpcalc / this = {ours_step / each:8.4f}")
    if "dpcalc, secure" in found:
        print(f"  secure / OS seed = {found['dpcalc, secure'] / found['dpcalc, OS seed']:.3f}")


def slow_ones(x: np.ndarray, y: np.ndarray, batch: int) -> Timed:
    """Return the peers that are timed on few records, each checked."""
    given = drawn(*x.shape, batch, 0)
    made = {"torch autograd": torch_loop(x, y, batch), "Opacus": opacus_steps(x, y, batch)}
    found: Timed = {name: run for name, run in made.items() if run is not None}
    if "torch autograd" in found:
        agree("torch autograd", found["torch autograd"](), reference(x, y, given, batch))
    still = opacus_steps(x, y, batch, 0.0)
    if still is not None:
        agree("Opacus", still(), reference(x, y, given._replace(z=0.0 * given.z), batch, math.inf))
    for name in made.keys() - found.keys():
        print(f"  ({name}: not installed)")
    return found


def naive_ensemble(x: np.ndarray, y: np.ndarray, replicas: int) -> np.ndarray:
    """Return an ensemble by the usual idiom: an array of shape (replicas, d), its noise drawn step by step."""
    rng = np.random.Generator(np.random.SFC64(SEED))
    w = np.zeros((replicas, x.shape[1]))
    for xt, yt in zip(x, y, strict=True):
        gradient = (-yt / (1.0 + np.exp(yt * (w @ xt))))[:, np.newaxis] * xt
        w = w - ETA * (gradient + SIGMA * rng.normal(size=w.shape))
        size = np.linalg.norm(w, axis=1, keepdims=True)
        w = np.where(size > HELD, w * (HELD / size), w)
    return w


def jax_ensemble(x: np.ndarray, y: np.ndarray, replicas: int) -> Callable[[], Any] | None:
    """Return a compiled scan over all replicas, the noise from JAX, or None."""
    jax = imported("jax")
    if jax is None:
        return None
    jnp = jax.numpy

    def step(w: Any, given: Any) -> Any:
        xt, yt, key = given
        gradient = (-yt / (1.0 + jnp.exp(yt * (w @ xt))))[:, None] * xt
        w = w - ETA * (gradient + SIGMA * jax.random.normal(key, w.shape, dtype=jnp.float64))
        size = jnp.sqrt((w * w).sum(axis=1, keepdims=True))
        return w * jnp.minimum(1.0, HELD / size), None

    scan = jax.jit(lambda w, given: jax.lax.scan(step, w, given)[0])
    keys = jax.random.split(jax.random.PRNGKey(0), len(x))
    given = (jnp.asarray(x), jnp.asarray(y), keys)
    return lambda: np.asarray(scan(jnp.zeros((replicas, x.shape[1])), given))


def runs_together(columns: int, replicas: int, repeats: int) -> None:
    """Print the cost of an ensemble over that of its noise."""
    steps = max(20, 12_000_000 // (columns * replicas))
    problem = data(steps, columns)
    x, y, _ = problem
    fixed, shuffled = planned("pnsgd", problem), planned("shuffled", problem)
    edges = ensemble._edges(fixed, replicas)
    first = ensemble.train(fixed, problem, replicas, SEED, workers=1)
    generator = ensemble._generator(np.random.SeedSequence(SEED), 0, 0)
    some = -generator.standard_normal((steps, columns, edges[1]))[:, :, :3]
    for k in range(3):
        agree("ensemble", first[k], reference(x, y, Given(np.arange(steps), some[:, :, k]), 1))
    buffer = np.empty(1 << 15)

    def floor() -> None:
        bits = np.random.Generator(np.random.SFC64(SEED))
        for _ in range(steps * columns * replicas // len(buffer)):
            bits.standard_normal(out=buffer)

    timed: Timed = {
        "noise alone": floor,
        "given order": lambda: ensemble.train(fixed, problem, replicas, SEED, workers=1),
        "given order, two workers": lambda: ensemble.train(fixed, problem, replicas, SEED, workers=2),
        "an order each": lambda: ensemble.train(shuffled, problem, replicas, SEED, workers=1),
        "numpy, (R, d) idiom": lambda: naive_ensemble(x, y, replicas),
    }
    made = jax_ensemble(x, y, replicas)
    if made is not None:
        made()
        timed["JAX scan, its own noise"] = made
    found = medians(timed, repeats)
    alone = found["noise alone"]
    each = 1e9 * alone / (steps * columns * replicas)
    print(f"{replicas} runs together, d = {columns}, {steps} steps: a normal costs {each:.1f} ns")
    for name, seconds in found.items():
        print(f"  {name:28} {seconds / alone:7.3f} times the noise")
    print(f"  two workers / one = {found['given order, two workers'] / found['given order']:.3f} by the clock, "
          f"{busiest(lambda workers: ensemble.train(fixed, problem, replicas, SEED, workers=workers)):.3f} by "
          "the processor time of the busier one")  # fmt: skip


def busiest(run: Callable[[int], Any], repeats: int = 5) -> float:
    """Return the processor time on the longest way through two equal processes over that of one, the median."""
    ratios = []
    for _ in range(repeats):
        own, _, alone = spent(), run(1), spent()
        _, shared = run(2), spent()
        longest = shared[0] - alone[0] + 0.5 * (shared[1] - alone[1])
        ratios.append(longest / (alone[0] - own[0]))
    return statistics.median(ratios)


def spent() -> tuple[float, float]:
    """Return the processor time of this process, and that of those it has started."""
    who = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    return tuple(sum(resource.getrusage(each)[:2]) for each in who)  # type: ignore[return-value]


def file_pass(rows: int, columns: int = 50, repeats: int = 5) -> None:
    """Print the cost of passes over a file's records, beside reading and multiplying them once in numpy."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "t.npy")
        written = np.lib.format.open_memmap(path, "w+", np.float64, (rows, columns + 1))
        rng = np.random.default_rng(1)
        for first in range(0, rows, 100_000):
            written[first : first + 100_000] = rng.standard_normal(written[first : first + 100_000].shape)
        del written
        w = rng.standard_normal(columns + 1)
        low, high = -np.linspace(3.0, 5.0, columns), np.linspace(3.0, 6.0, columns)  # a subtraction and a division

        def read() -> Problem:
            x, y, _ = bounds.prepared(
                tables.read(path), feature_bound=1.0, label_bound=None, signed=True,
                ranges=ranges.Ranges(low, high, None), intercept=True, share=0.2,
            )  # fmt: skip
            return Problem(x, y, of("logistic", feature_bound=1.0))

        problem = read()
        sums = ExactSums(problem, 0.1, rows)
        size = max(1, rows // 100)
        ordered = planned("pnsgd", problem, batch_size=size)

        def chunks() -> None:
            room = np.empty((1 << 15, columns + 1))
            with open(path, "rb") as stream:
                np.lib.format.read_magic(stream), np.lib.format.read_array_header_1_0(stream)
                while size := stream.readinto(memoryview(room).cast("B")):
                    room[: size // (8 * (columns + 1))] @ w

        timed: Timed = {
            "dpcalc, read, map and shorten": read,
            "dpcalc, cut": lambda: ExactSums(problem, 0.1, rows),
            "dpcalc, each pass of full batches": lambda: sums.descent(w, None),
            "dpcalc, a hidden pass of batches": lambda: single.train(ordered, problem, kernel.seeded(SEED)),
            "numpy, read in pieces and multiply": chunks,
            "numpy, load and multiply": lambda: np.load(path) @ w,
            "numpy, map and multiply": lambda: np.load(path, mmap_mode="r") @ w,
        }
        found = medians(timed, repeats)
    ours = [seconds for name, seconds in found.items() if name.startswith("dpcalc")]
    print(f"a file of {rows} records of {columns} columns; beside a peer, the speed of each of ours over its own")
    for name, seconds in found.items():
        ratios = "" if name.startswith("dpcalc") else "   ".join(f"{seconds / each:6.3f}" for each in ours)
        print(f"  {name:34} {1e9 * seconds / rows / (columns + 1):6.2f} ns a cell   {ratios}")


def memory() -> None:
    """Print the peak memory of a run on data of 160 MB, over the data."""
    problem = data(1_000_000, 20)
    ours = planned("shuffled-epochs", problem, epochs=1, batch_size=64)
    size = problem.features.nbytes + problem.labels.nbytes
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    import tracemalloc

    tracemalloc.start()
    single.train(ours, problem, kernel.seeded(SEED))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    print(f"memory: data {size / 1e6:.0f} MB, allocated beside them at most {peak / 1e6:.1f} MB, together "
          f"{1.0 + peak / size:.3f} times the data (process peak so far {before / 1e3:.0f} MB)")  # fmt: skip


def versions() -> str:
    """Return what is installed, and the load of the machine."""
    names = ("numpy", "scipy", "numba", "jax", "torch", "opacus", "randomgen")
    shown = [f"{name} {getattr(imported(name), '__version__', '-')}" for name in names]
    clock = "processor time" if "--cpu" in sys.argv else "clock"
    load = f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.2f}"
    return f"python {sys.version.split()[0]}, {', '.join(shown)}; {load}; {clock}"


def main() -> None:
    """Print everything, or what a file costs."""
    warnings.simplefilter("ignore")
    if "--file" in sys.argv:
        print(versions())
        file_pass(int(float(sys.argv[sys.argv.index("--file") + 1])))
        return
    repeats = 3 if "--quick" in sys.argv else 7
    print(versions())
    for columns in (2, 20, 100):
        one_run(columns, 1, repeats)
    for columns in (20, 100):
        one_run(columns, 64, repeats)
    for replicas in (10_000, 1_000, 100):
        runs_together(10, replicas, repeats)
    memory()
    print(f"load at the end {os.getloadavg()[0]:.2f}")


if __name__ == "__main__":
    main()
