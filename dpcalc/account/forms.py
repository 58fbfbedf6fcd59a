"""The kinds of file that training jobs write, recognised by their structure and never executed."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from dpcalc.account import keys, long_history
from dpcalc.account.command_line import of_command_line
from dpcalc.account.facts import Said, meaning, value_of
from dpcalc.account.loader import jointly
from dpcalc.errors import NotApplicable, SpecError
from dpcalc.files import documents
from dpcalc.files.documents import Items, Node, Rules, Scalar, Table
from dpcalc.files.place import Place, clipped
from dpcalc.files.reading import DOCUMENT_BYTES, RUN_BYTES, read_document
from dpcalc.model.numbers import parse_number
from dpcalc.numerics.floats import up

_MOST_STEPS = 10**12
_PICKLED = (b"\x80", b"PK\x03\x04", b"\x1f\x8b", b"\x93NUMPY", b"\x89HDF")
_PICKLES = (".pt", ".pth", ".ckpt", ".pkl", ".pickle", ".bin", ".joblib", ".h5", ".keras", ".npy", ".npz")


class Pickled(SpecError):
    """A pickle, a checkpoint or an array: it may run code when read, and is not opened."""


class Phase(NamedTuple):
    """Equal steps: noise multiplier, sampling rate (None if not given), and number of steps."""

    noise_multiplier: float
    rate: float | None
    steps: int


class RunFile(NamedTuple):
    """The facts in a file.

    Attributes:
        shown, kind: its name in messages, and the kind of file.
        facts: the facts by name.
        phases: the phases of a history or an event.
        unused, remarks: the keys that were not used, and why.
        ordered: whether the phases are in training order.
        exact: whether only equal phases were merged.
        in_line: whether records have fixed positions, so that adding one shifts all later ones.
    """

    shown: str
    kind: str
    facts: dict[str, Said]
    phases: tuple[Phase, ...] = ()
    unused: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    ordered: bool = True
    exact: bool = True
    in_line: bool = False


def read_run(path: str) -> RunFile:
    """Return the facts in a file, ``-`` for standard input.

    Raises:
        Pickled: it is a pickle, a checkpoint or an array.
        SpecError: the kind of file is unknown, or part of it is malformed.
        NotApplicable: it describes a mechanism without a bound.
    """
    shown = str(Place(path))
    if path.lower().endswith(_PICKLES):
        raise _pickled(shown)
    raw = read_document(path, "run file", RUN_BYTES)
    if raw.startswith(_PICKLED):
        raise _pickled(shown)
    taken = long_history.take_out(shown, raw) if len(raw) > long_history.FROM else None
    if taken is None:
        return _of_text(shown, path, raw)
    run = _of_text(shown, path, taken[0])
    if run.phases != (Phase(1.0, 1.0, 1),):
        raise SpecError(f"{shown} has a long list of triples, but no key history", "name it history")
    kinds, ordered, exact = _long_phases(shown, taken[1])
    phases = tuple(Phase(z, rate, int(steps)) for z, rate, steps in kinds)
    return run._replace(phases=phases, ordered=ordered, exact=exact)


def _of_text(shown: str, path: str, raw: bytes) -> RunFile:
    if len(raw) > DOCUMENT_BYTES:
        raise SpecError(
            f"{shown} has more than {DOCUMENT_BYTES} bytes beside its history", "give the part about the training run"
        )
    node = _parsed(shown, path, raw)
    return next(filter(None, (read(shown, node) for read in _FORMS)))


def _long_phases(shown: str, rows: Any) -> long_history.Merged:
    """Return the phases of a long history, extracted from its file.

    Raises:
        SpecError, NotApplicable: as for a short history.
    """
    if (row := long_history.first_outside(rows, _MOST_STEPS)) is not None:
        place = Place(shown)
        _entry(shown, row + 1, Items(place, tuple(Scalar(place, f"{value:.17g}") for value in rows[row].tolist())))
    return long_history.merged(rows)


def _pickled(shown: str) -> Pickled:
    return Pickled(
        f"{shown} is a pickle, a checkpoint or an array: reading it may run code, so it is not opened",
        "run the lines above beside the training loop, and give dpcalc the file that they write",
    )


def _parsed(shown: str, path: str, raw: bytes) -> Node:
    """Return a file as a node, parsed by its extension, else by the first parser that accepts it."""
    ending = path.lower().rpartition(".")[2]
    if ending in ("yaml", "yml"):
        return _yaml(shown, raw)
    if ending == "toml":
        return documents.parse_toml(shown, raw)
    first: SpecError | None = None
    parsers: tuple[Callable[[str, bytes], Node], ...] = (documents.parse_json, documents.parse_python, _yaml)
    script = Scalar(Place(shown), raw.decode("utf-8-sig", "replace"))
    for parse in parsers[:2] if ending == "json" else parsers:
        try:
            node = parse(shown, raw)
            return script if parse is _yaml and isinstance(node, Scalar) else node  # YAML joins lines
        except SpecError as error:
            first = first or error
    assert first is not None
    if ending != "json" and isinstance(flags := of_command_line(script), Table):
        return flags
    raise SpecError(f"{shown} is not JSON, YAML or a printed Python value", first.message)


def _yaml(shown: str, raw: bytes) -> Node:
    if (node := documents.parse_yaml(shown, raw, Rules(foreign=True))) is None:
        raise SpecError(f"{shown} is empty", "give a file of the run")
    return node


# --- histories --------------------------------------------------------------------------------------------------------


def _history(shown: str, node: Node) -> RunFile | None:
    """Return an Opacus history: a list, or the mapping that contains it."""
    found = list(_histories(node))
    if not found:
        return None
    if len(found) > 1:
        raise SpecError(f"{shown} has {len(found)} histories", "give one file for each, and add them up in a ledger")
    listed = found[0]
    phases = tuple(_entry(shown, number, item) for number, item in enumerate(listed.items, 1))
    if not phases:
        raise SpecError(
            f"{shown}: the history is empty", "nothing was trained, or the file was written before training"
        )
    run = _walked(shown, "an Opacus history", node) if isinstance(node, Table) else RunFile(shown, "", {})
    facts = {"tool": Said("opacus", shown, "opacus"), **run.facts}
    rate = node.fields.get("rate") if isinstance(node, Table) else None
    if rate is not None and isinstance(rate.node, Scalar) and not rate.node.null:
        facts["sample_rate"] = Said(_strict(shown, "sample_rate", rate.node), f"{shown}: rate", rate.node.text)
        run = run._replace(unused=tuple(key for key in run.unused if key != "rate"))
    return run._replace(kind="the history of an Opacus accountant", facts=facts, phases=phases)


def _histories(node: Node) -> Iterator[Items]:
    """Yield every list that is a history: the whole file, or the value of that key."""
    if isinstance(node, Items):
        if _is_history(node):
            yield node
        return
    if isinstance(node, Table):
        for path, value in keys.values(node):
            if path[-1] == keys.HISTORY and isinstance(value, Items) and _is_history(value):
                yield value


def _is_history(node: Items) -> bool:
    """Return whether a list contains lists or is empty: other histories hold metrics, numbers or mappings."""
    return all(isinstance(item, Items) for item in node.items)


def _entry(shown: str, number: int, item: Node) -> Phase:
    place = f"{shown}: entry {number} of the history"
    if not isinstance(item, Items) or len(item.items) != 3:
        raise SpecError(f"{place} is not (noise multiplier, rate, steps)", "print engine.accountant.history")
    noise, rate, steps = (_strict(place, name, part) for name, part in zip(_ENTRY, item.items, strict=True))
    return Phase(noise, rate, int(steps))


_ENTRY = ("noise_multiplier", "sample_rate", "steps")


def _strict(place: str, name: str, node: Node) -> float | int:
    """Return a number of an entry or event, which must be written without quotes.

    Raises:
        SpecError: it is not a number, or out of range.
        NotApplicable: there is no noise.
    """
    if not isinstance(node, Scalar) or not node.plain or node.tagged or node.text.lower() in ("true", "false", "null"):
        raise SpecError(f"{place}: {name} is not a number", "write it without quotes")
    if name == "noise_multiplier" and re.fullmatch(r"[+]?0*\.?0*(e[+-]?\d+)?", node.text.lower()):
        raise NotApplicable(f"{place} has no noise: epsilon is infinite", "a step without noise is not private")
    try:
        value: float | int = value_of(meaning(name), node)
    except SpecError as error:
        hint = "an entry is (noise multiplier, rate, steps), in this order" if name in _ENTRY else error.hint
        raise SpecError(f"{place}: {name}: {error.message}", hint) from None
    if name in ("steps", "count") and value > _MOST_STEPS:
        raise SpecError(f"{place}: more than {_MOST_STEPS:g} steps", "check the file")
    return value


# --- events -----------------------------------------------------------------------------------------------------------

_TRUNCATED = ("dataset_size", "sampling_probability", "truncated_batch_size", "noise_multiplier")
_WITHOUT = "SampledWithoutReplacementDpEvent"
_TREE = "SingleEpochTreeAggregationDpEvent"
_EVENT_FIELDS = {
    "NoOpDpEvent": (),
    "GaussianDpEvent": ("noise_multiplier",),
    "PoissonSampledDpEvent": ("sampling_probability", "event"),
    _WITHOUT: ("source_dataset_size", "sample_size", "event"),
    "SelfComposedDpEvent": ("event", "count"),
    "ComposedDpEvent": ("events",),
    "TruncatedSubsampledGaussianDpEvent": _TRUNCATED,
    _TREE: ("noise_multiplier", "step_counts"),
}


def _event(shown: str, node: Node) -> RunFile | None:
    """Return an event of dp_accounting, dumped as mappings with ``class_name``, or printed."""
    if not isinstance(node, Table) or not _class_of(node).endswith("DpEvent"):
        return None
    caps: list[tuple[int, int]] = []
    phases = tuple(_phases(shown, node, 1, caps))
    if not phases:
        raise NotApplicable(f"{shown}: the event releases nothing", "it costs no privacy")
    fixed = _WITHOUT in _classes(node)
    sampled = "fixed" if fixed else "poisson" if any(phase.rate is not None for phase in phases) else "full"
    facts = {
        "sampling": Said(sampled, f"{shown}: events", sampled),
        "tool": Said("dp_accounting", shown, "dp_accounting"),
    }
    if in_line := _TREE in _classes(node):
        facts["adjacency"] = Said("null-record", f"{shown}: {_TREE}", "zero-out, as the order is fixed")
    if caps:
        if len(set(caps)) > 1 or len(caps) < len(phases):
            raise NotApplicable(f"{shown}: batches of several sizes are not accounted for", "write one event")
        for name, value in zip(("records", "batch_size" if fixed else "max_batch_size"), caps[0], strict=True):
            facts[name] = Said(value, f"{shown}: events", str(value))
    return RunFile(shown, "an event of dp_accounting", facts, phases, in_line=in_line)


def _class_of(node: Table) -> str:
    field = node.fields.get("class_name")
    return field.node.text if field is not None and isinstance(field.node, Scalar) else ""


def _classes(node: Node) -> Iterator[str]:
    """Yield the classes of an event and of its parts."""
    within: Iterable[Node] = node.items if isinstance(node, Items) else ()
    if isinstance(node, Table):
        yield _class_of(node)
        within = (field.node for field in node.fields.values())
    for part in within:
        yield from _classes(part)


def _phases(shown: str, node: Node, times: int, caps: list[tuple[int, int]]) -> Iterator[Phase]:
    """Yield the steps of an event repeated ``times``; add records and largest batch of truncated ones to ``caps``."""
    name, fields = _event_fields(shown, node)
    if name == "GaussianDpEvent":
        yield Phase(_strict(shown, "noise_multiplier", fields["noise_multiplier"]), None, times)
    elif name == "SelfComposedDpEvent":
        count = times * int(_strict(shown, "steps", fields["count"]))
        if count > _MOST_STEPS:
            raise SpecError(f"{shown}: more than {_MOST_STEPS:g} steps", "check the file")
        yield from _phases(shown, fields["event"], count, caps)
    elif name == "ComposedDpEvent":
        if not isinstance(fields["events"], Items):
            raise SpecError(f"{shown}: events of {name} is not a list", "write a list of events")
        for event in fields["events"].items:
            yield from _phases(shown, event, times, caps)
    elif name == "TruncatedSubsampledGaussianDpEvent":
        records, chance, most, z = (_strict(shown, field, fields[field]) for field in _TRUNCATED)
        caps.append((int(records), int(most)))
        yield Phase(z, chance, times)
    elif name == _TREE:  # one node of each height contains the record, in at most one tree
        trees = fields["step_counts"].items if isinstance(fields["step_counts"], Items) else [fields["step_counts"]]
        longest = max((int(_strict(shown, "steps", count)) for count in trees), default=1)
        yield Phase(_strict(shown, "noise_multiplier", fields["noise_multiplier"]), None, times * longest.bit_length())
    elif name in ("PoissonSampledDpEvent", _WITHOUT):
        before = len(caps)
        inner = list(_phases(shown, fields["event"], 1, caps))
        if any(phase.rate is not None for phase in inner) or len(caps) > before:
            raise NotApplicable(f"{shown}: nested sampling is not accounted for", "write one probability")
        if inner:
            alone = len(inner) == inner[0].steps == 1
            noise = inner[0].noise_multiplier if alone else jointly((p.noise_multiplier, p.steps) for p in inner)
            yield Phase(noise, _rate_of_sample(shown, name, fields, caps), times)


def _rate_of_sample(shown: str, name: str, fields: dict[str, Node], caps: list[tuple[int, int]]) -> float | None:
    """Return the rate of a Poisson sample; add records and size of one without replacement to ``caps``."""
    if name != _WITHOUT:
        return _strict(shown, "sample_rate", fields["sampling_probability"])
    records, size = (int(_strict(shown, "records", fields[field])) for field in ("source_dataset_size", "sample_size"))
    if size > records:
        raise SpecError(f"{shown}: a sample of {size} of {records} records", "sample_size is at most the records")
    caps.append((records, size))
    return None


def _event_fields(shown: str, node: Node) -> tuple[str, dict[str, Node]]:
    """Return the class and the fields of an event; raise NotApplicable or SpecError if it is not supported."""
    if not isinstance(node, Table) or not _class_of(node):
        raise SpecError(f"{shown}: an event has no class_name", "dump each event as {class_name: ..., its fields}")
    name = _class_of(node)
    if name not in _EVENT_FIELDS:
        raise NotApplicable(f"{shown}: {clipped(name)} is not accounted for", f"supported: {', '.join(_EVENT_FIELDS)}")
    fields = {key: field.node for key, field in node.fields.items() if key not in ("class_name", "module_name")}
    if set(fields) != set(_EVENT_FIELDS[name]):
        wanted = ", ".join(_EVENT_FIELDS[name]) or "no field"
        raise SpecError(f"{shown}: {name} has {', '.join(map(clipped, fields)) or 'no field'}", f"it has {wanted}")
    return name, fields


# --- plans and configurations -----------------------------------------------------------------------------------------

_PLANS = ("BandMFConfig", "BandMFExecutionPlanConfig")
_OF_A_PLAN = ("sampling_prob", "expected_participations")  # per step of the record's group, or over all steps


def _of_dpcalc(shown: str, node: Node) -> RunFile | None:
    """Recognise a recipe or a ledger of dpcalc, which have their own readers."""
    field = node.fields.get("dpcalc") if isinstance(node, Table) else None
    return RunFile(shown, field.node.text, {}) if field is not None and isinstance(field.node, Scalar) else None


def _plan(shown: str, node: Node) -> RunFile | None:
    """Return a plan of JAX-Privacy: cyclic Poisson sampling with noise of banded matrices with unit columns."""
    if not isinstance(node, Table):
        return None
    if {"buf_decay", "output_scale"} <= set(node.fields):
        raise NotApplicable(
            f"{shown} has the buffers of a BLT, whose guarantee depends on how often a record is used",
            "save its matrix with numpy.save('c.npy', blt.materialize(STEPS)), and ask `dpcalc dp-ftrl --matrix c.npy "
            "-d 1e-6` with --epochs and --noise-multiplier; `--mechanism blt` uses dpcalc's own buffers",
        )
    drawn = next((name for name in _OF_A_PLAN if name in node.fields), None)
    if _class_of(node) not in _PLANS and (drawn is None or "iterations" not in node.fields):
        return None
    run = _walked(shown, "an execution plan of JAX-Privacy", node)
    facts = dict(run.facts)
    strategy = node.fields.get("strategy")
    if strategy is not None and isinstance(strategy.node, Items):
        count = len(strategy.node.items)
        facts["bands"] = Said(max(1, count), f"{shown}: strategy", f"{count} coefficients")
        _refuse_little_noise(shown, node, strategy.node)
    elif "bands" not in facts:
        facts["bands"] = Said(None, f"{shown}: strategy", "not written out")
    if drawn == "expected_participations" and facts["bands"].value and "steps" in facts and facts["steps"].value:
        facts["sample_rate"] = _rate_of_group(shown, node, facts["bands"].value, facts["steps"].value)
    if "records" in facts:
        facts.setdefault("adjacency", Said("null-record", f"{shown}: num_examples", "zero-out, as n is public"))
    facts["sampling"] = Said("poisson", f"{shown}: plan", "Poisson within each group")
    facts["tool"] = Said("jax-privacy", shown, "jax-privacy")
    facts.setdefault("sample_rate", Said(1.0, f"{shown}: plan", "1, the default"))
    unused = tuple(key for key in run.unused if not key.startswith(("strategy", "column_normalize", *_OF_A_PLAN)))
    return run._replace(facts=facts, unused=unused)


def _rate_of_group(shown: str, node: Table, bands: int, steps: int) -> Said:
    """Return the sampling rate of a record in a step of its group, rounded up."""
    expected = node.fields["expected_participations"].node
    uses = float(_strict(shown, "epochs", expected))
    rate = up(uses * bands / steps, 4.0)
    if not rate <= 1.0 + 1e-12:
        raise SpecError(
            f"{shown}: {uses:g} participations of a record in {steps} steps of {bands} groups", "at most one a round"
        )
    return Said(min(1.0, rate), f"{shown}: expected_participations", f"{uses:g} x {bands}/{steps}")


def _refuse_little_noise(shown: str, node: Table, strategy: Items) -> None:
    """Refuse columns normalised to 1 if the noise is calibrated for shorter columns.

    Raises:
        NotApplicable: the noise may be too small.
    """
    field = node.fields.get("column_normalize")
    if field is None or not isinstance(field.node, Scalar) or field.node.text.lower() != "true":
        return
    numbers = [item.text for item in strategy.items if isinstance(item, Scalar)]
    if not math.hypot(*(parse_number(text) for text in numbers)) >= 1.0:
        raise NotApplicable(
            f"{shown}: columns are normalised, but the noise is less than noise_multiplier for their norm",
            "write a strategy whose norm is 1 or more",
        )


def _configuration(shown: str, node: Node) -> RunFile:
    """Return the facts of any other file: keys that mean a fact, at any depth."""
    node = of_command_line(node) if isinstance(node, Scalar) else node
    if not isinstance(node, Table):
        what = f"{shown} is a list or a single value, not a run file"
        raise SpecError(what, "give a configuration, a history, or a command with its flags: `dpcalc account --help`")
    run = _walked(shown, "a training configuration", node)
    if not run.facts and not run.remarks:
        raise SpecError(f"{shown} has no value that describes a run", "see `dpcalc account --help-all` for the names")
    origins = [said.origin for said in run.facts.values()]
    private = "DPKeras" in _class_of(node) or any(o.endswith(("l2_norm_clip", "num_microbatches")) for o in origins)
    if not private or "tool" in run.facts:
        return run
    facts = {**run.facts, "tool": Said("tf-privacy", shown, "tf-privacy")}
    if "accumulation" in facts and "batch_size" in facts and "per_device_batch_size" not in facts:  # of one of them
        facts["per_device_batch_size"] = facts.pop("batch_size")
        facts.setdefault("devices", Said(1, f"{shown}: one device", "1"))
    return run._replace(kind="a configuration of TF-Privacy", facts=facts)


def _walked(shown: str, kind: str, node: Table) -> RunFile:
    """Return the facts of a mapping and its nested mappings, and the unused keys."""
    facts, unused, remarks = keys.facts_of(shown, node)
    return RunFile(shown, kind, facts, (), unused, remarks)


_FORMS: tuple[Callable[[str, Node], RunFile | None], ...] = (_of_dpcalc, _event, _history, _plan, _configuration)
