"""How much is read of a file that may have been forged: every limit, and why it is there.

What a recipe may say (cases, assertions, lengths of a name) is bounded where recipes are understood.
"""

from __future__ import annotations

# --- recipes, and the configurations that they refer to ---------------------------------------------------------------

DOCUMENT_BYTES = 1_000_000
"""Of one file: ten thousand cases fit, and a parser is through in seconds."""

DOCUMENT_VALUES = 200_000
"""Values and keys of one file: each costs microseconds, before any time limit of a case begins to count."""

DOCUMENT_DEPTH = 32
"""Mappings and lists inside each other: a recipe needs four, and a reader that calls itself must not overflow."""

CONFIGURATION_BYTES = 10_000_000
"""Of all the configurations that one recipe refers to."""

CONFIGURATION_LOOKUPS = 2_000_000
"""Mappings looked into for all the references of one recipe: merges may chain without end."""

TOML_LINE = 10_000
"""Bytes of a line: the parser takes the square of the length of a key."""

# --- schedules --------------------------------------------------------------------------------------------------------

SCHEDULE_BYTES = 2 << 30
"""Of a file and of what it unpacks to: far more than the steps below need."""

SCHEDULE_STEPS = 20_000_000
"""Steps, also after ``repeat``: each takes some hundred bytes in the computation."""

SCHEDULE_YAML_BYTES = 5_000_000
"""Of a schedule in YAML, whose parser is a hundred times slower than that of CSV."""

# --- lines and tables -------------------------------------------------------------------------------------------------

LINE_BYTES = 1 << 20
"""Of a line of CSV: a file without line breaks must not be held as a whole."""

TABLE_CELLS = 1 << 33
"""Cells of a table of records, 64 GiB: more is a forged header, not data that could be trained on here."""

HELD_CELLS = 1 << 23
"""Cells of a table that is held in memory, 64 MiB: of a larger one some rows at a time are."""

TABLE_COLUMNS = 1 << 20
"""Columns of a matrix: each is given a name."""

RANGES_BYTES = 1 << 22
"""Of a table of ranges, which has a line for each feature."""

# --- numpy's files ----------------------------------------------------------------------------------------------------

ARRAY_HEADER = 10_000
"""Bytes of an array's header, which is parsed as Python."""

ARCHIVE_DIRECTORY = 1 << 20
"""Bytes of an archive's directory: it is read as a whole."""

UNPACKED_BYTES = 1 << 26
"""Above it, an array of records may not be packed more tightly than real data can be."""

UNPACKED_RATIO = 200
"""Bytes that one byte of real data unpacks to, at most."""

# --- our own files ----------------------------------------------------------------------------------------------------

MODEL_BYTES = 1 << 30
"""Of a model and of what it unpacks to."""

BASELINE_BYTES = 64 << 20
"""Of an earlier report: more than a check writes. A forged one must not hold up the verdict."""
