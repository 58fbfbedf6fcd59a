"""Bytes like others, but wrong."""

import random
import re
from collections.abc import Callable, Sequence

NUMBERS = (
    "0", "-0", "-1", "1", "0.5", "1e-5", "1e308", "1e309", "-1e309", "5e-324", "1e-400", "nan", "inf", "-inf", "NaN",
    "1/3", "1/0", "0/0", "2^-20", "2**10", "10^100000", "9^99999", "0^-1", "2^0.5", "50%", "1e999999", "1_000", "_1",
    "1__0", "0x10", "1e", "e5", "1.2.3", "1,5", "１２", "٣", "½", "1e-5000", "9" * 99, "9" * 101, "0." + "0" * 90 + "1",
    "1000000000000000000", "1000000000000000001", "18446744073709551616", "1e15", "1e16", "1e18", "",
)  # fmt: skip
"""Numbers at the edges of what is one."""

WORDS = (
    b"", b"\0", b"\xff\xfe", b"\xef\xbb\xbf", b"\r", b"\n", b"\r\n", b"\t", b" ", b",", b":", b"-", b"#", b"'", b'"',
    b"{", b"}", b"[", b"]", b"&a ", b"*a", b"!!python/object/apply:os.system", b"!!binary ", b"<<: *a", b"---", b"...",
    b"%", b"\\", b"\x1b[31m", b"\xe2\x80\xae", b"\xf0\x9f\x98\x80", b"repeat", b"steps", b"true", b"null", b"~", b"yes",
    b"PK\x03\x04", b"\x93NUMPY", b"'descr': '|O'", b"(99999999999,)", b"\x80\x04\x95", b"<a>", b"../../x", b"/dev/zero",
)  # fmt: skip
"""What formats take for more than text."""

_NUMBER = re.compile(rb"[0-9][0-9.eE+-]*")


def mutated(r: random.Random, seeds: Sequence[bytes], longest: int = 1 << 16) -> bytes:
    """One of the seeds after a few changes, mostly one or two."""
    data = bytearray(r.choice(seeds))
    for _ in range(r.choice((0, 1, 1, 1, 2, 2, 3, 6))):
        r.choice(_CHANGES)(r, data, seeds)
    return bytes(data[:longest])


def _place(r: random.Random, data: bytearray) -> slice:
    at = r.randint(0, len(data))
    return slice(at, at + r.choice((0, 1, 1, 2, 4, 8, r.randint(0, 64))))


def _flip(r: random.Random, data: bytearray, _: Sequence[bytes]) -> None:
    if data:
        data[r.randrange(len(data))] ^= 1 << r.randrange(8)


def _overwrite(r: random.Random, data: bytearray, _: Sequence[bytes]) -> None:
    data[_place(r, data)] = r.randbytes(r.randint(0, 8))


def _word(r: random.Random, data: bytearray, _: Sequence[bytes]) -> None:
    data[_place(r, data)] = r.choice(WORDS)


def _number(r: random.Random, data: bytearray, _: Sequence[bytes]) -> None:
    found = list(_NUMBER.finditer(data))
    if found:
        data[slice(*r.choice(found).span())] = r.choice(NUMBERS).encode()


def _cut(r: random.Random, data: bytearray, _: Sequence[bytes]) -> None:
    del data[r.randint(0, len(data)) :]


def _remove(r: random.Random, data: bytearray, _: Sequence[bytes]) -> None:
    del data[_place(r, data)]


def _again(r: random.Random, data: bytearray, _: Sequence[bytes]) -> None:
    """Some of it many times over: long lines, deep nesting, many rows."""
    place = _place(r, data)
    data[place] = data[place] * r.choice((2, 3, 17, 300))


def _splice(r: random.Random, data: bytearray, seeds: Sequence[bytes]) -> None:
    other = r.choice(seeds)
    data[_place(r, data)] = other[r.randint(0, len(other)) :][: r.randint(0, 256)]


_CHANGES: tuple[Callable[[random.Random, bytearray, Sequence[bytes]], None], ...] = (
    _flip, _overwrite, _word, _word, _number, _number, _cut, _remove, _again, _splice,
)  # fmt: skip
