"""JSON in and out, at the price of the C accelerator alone.

`import json` pulls in `re` and costs a bare interpreter start again; the hook pays that at every
tool call. CPython's own accelerator does all the work, so it is used directly; where it is
missing or differs, the standard module serves.

`loads` is lenient as a reader of other programs' output must be: control characters inside
strings are accepted, and undecodable bytes and lone surrogates become U+FFFD, so whatever it
returns can be written to a database and to a pipe.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

DEPTH_MAX = 100  # no host nests so deeply; what is deeper could be read, but then neither cleaned nor written


def _finite(digits: str) -> float | None:
    """A number that JSON can hold again; one beyond all bounds is nothing."""
    number = float(digits)
    return number if number - number == 0 else None


def _constant(_name: str) -> None:
    """NaN and Infinity are no JSON."""


class _Reading:
    strict = False
    object_hook = None
    object_pairs_hook = None
    parse_float = staticmethod(_finite)
    parse_int = int
    parse_constant = staticmethod(_constant)
    memo: dict[str, str] = {}  # noqa: RUF012 - the accelerator asks for it


def _unencodable(value: object) -> object:
    raise TypeError(f"{type(value).__name__} is no JSON value")


try:
    from _json import encode_basestring_ascii, make_encoder, make_scanner

    _scan = make_scanner(_Reading())  # type: ignore[arg-type]
    _encode = make_encoder(None, _unencodable, encode_basestring_ascii, None, ":", ",", False, False, False)

    def _write(value: object) -> str:
        return "".join(_encode(value, 0))

    if _write({"a": [1, None, True]}) != '{"a":[1,null,true]}':
        raise ImportError("the accelerator answers differently here")
except (ImportError, TypeError):  # pragma: no cover - another Python
    import json

    _scan = json.JSONDecoder(strict=False).scan_once  # type: ignore[attr-defined]

    def _write(value: object) -> str:
        return json.dumps(value, separators=(",", ":"), allow_nan=False)


def loads(text: str | bytes) -> Any:
    """The value of a JSON text. Raises ValueError for anything that is not one whole JSON text."""
    if isinstance(text, bytes):
        text = text.decode("utf-8", "replace")
    text = text.strip("\ufeff \t\r\n\0")
    try:
        value, end = _scan(text, 0)
    except StopIteration as stopped:
        raise ValueError(f"no JSON value at character {stopped.value}") from None
    except RecursionError:
        raise ValueError("JSON nested too deeply") from None
    except SystemError:  # the accelerator raises json's own error, and only where json is imported
        raise ValueError("JSON that ends early or is malformed") from None
    if text[end:].strip():
        raise ValueError(f"more than one JSON value: the second begins at character {end}")
    if text.count("[") + text.count("{") > DEPTH_MAX and _is_too_deep(value):
        raise ValueError("JSON nested too deeply")
    return clean(value) if "\\u" in text else value


def loads_at(text: str, start: int) -> Any:
    """The value that begins at a place within a JSON text; what follows it is not looked at. Raises ValueError."""
    try:
        value, end = _scan(text, start)
    except (StopIteration, RecursionError, SystemError):
        raise ValueError(f"no JSON value at character {start}") from None
    return clean(value) if "\\u" in text[start:end] else value


def dumps(value: object) -> str:
    """The value as compact ASCII JSON. Raises ValueError or TypeError for what JSON cannot hold."""
    return _write(value)


def _is_too_deep(value: Any) -> bool:
    level = [value]
    for _ in range(DEPTH_MAX):
        level = [part for one in level if isinstance(one, dict | list) for part in _parts(one)]
        if not level:
            return False
    return True


def _parts(value: Any) -> Any:
    return value.values() if isinstance(value, dict) else value


def clean(value: Any) -> Any:
    """The same value with every lone surrogate in its strings replaced by U+FFFD."""
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, list):
        return [clean(part) for part in value]
    if isinstance(value, dict):
        return {clean(key): clean(part) for key, part in value.items()}
    return value
