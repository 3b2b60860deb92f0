"""The settings of an away period: the person's file, then the command line.

`$XDG_CONFIG_HOME/stopwarden/config.toml` (default `~/.config`) holds `name = value` lines, at the
top or under `[away]`; `--set name=value` wins for one away period. Names, ranges and choices are
those of `core.bounds`; whatever it does not know is refused, so a misspelt bound is never silently
the default. The file is read when the person goes away and never by a hook.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from stopwarden.cli.times import duration
from stopwarden.core.bounds import CHOICES, RANGES, policy_from
from stopwarden.core.errors import SettingError, UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stopwarden.core.bounds import Policy

SECONDS = ("wall_time", "skew", "look_without_reservation")  # these also take "30m" or "8h"
_WORDS: Mapping[str, object] = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
FILE_MAX = 64 * 1024


def settings_path(env: Mapping[str, str]) -> str:
    """Where the person's settings file is, whether or not it exists."""
    base = env.get("XDG_CONFIG_HOME", "")
    if not base.startswith("/"):
        base = os.path.join(env.get("HOME") or os.path.expanduser("~"), ".config")
    return os.path.join(base, "stopwarden", "config.toml")


def policy_of(env: Mapping[str, str], sets: Sequence[str] = (), *, keeper: bool = False) -> Policy:
    """The policy from the settings file and `name=value` words; `keeper` is what was said at the install.

    Raises SettingError or UsageError.
    """
    try:
        named = {name: _seconds(name, value) for name, value in read_settings(env).items()}
        policy_from(named)
    except SettingError as error:
        path = settings_path(env)
        told = error.happened if path in error.happened else f"{path}: {error.happened}"
        raise SettingError(told, kept="Nothing was changed", do=error.do) from None
    for word in sets:
        name, value = _set(word)
        named[name] = value
    named.setdefault("keeper", keeper)
    return policy_from(named)


def named_values(words: Sequence[str]) -> dict[str, object]:
    """What `name=value` words say, by name, each checked. Raises SettingError or UsageError."""
    named = dict(map(_set, words))
    policy_from(named)
    return named


def read_settings(env: Mapping[str, str]) -> dict[str, object]:
    """What the settings file says, by name; empty where there is none.

    Raises SettingError where it cannot be read or is no TOML.
    """
    path = settings_path(env)
    try:
        with open(path, "rb") as file:
            raw = file.read(FILE_MAX + 1)
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise _unreadable(path, error.strerror or "it cannot be opened") from None
    if len(raw) > FILE_MAX:
        raise _unreadable(path, f"it is longer than {FILE_MAX // 1024} kB")
    import tomllib

    try:
        tables = tomllib.loads(raw.decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise _unreadable(path, "it is not UTF-8 text") from None
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise _unreadable(path, str(error) or "it is nested too deeply") from None
    under = tables.pop("away", {})
    if not isinstance(under, dict):
        raise _unreadable(path, "`away` is a table of settings: write [away]")
    twice = sorted(tables.keys() & under.keys())
    if twice:
        raise _unreadable(path, f"{twice[0]} is set twice, at the top and under [away]")
    return {**tables, **under}


def _set(word: str) -> tuple[str, object]:
    name, equals, text = word.partition("=")
    name, text = name.strip().replace("-", "_"), text.strip()
    if not equals or not name:
        raise UsageError(
            f"--set {word} names no value", do="Use --set NAME=VALUE, for instance --set blocks_an_hour=20"
        )
    if name in CHOICES:
        return name, _WORDS.get(text.lower(), text)
    if name == "blocks_without_tools" and text.lower() in ("none", "host", ""):
        return name, None
    if name in RANGES and text.isascii() and text.lstrip("-").isdigit() and len(text) < 20:
        return name, int(text)
    return name, _seconds(name, text)


def _seconds(name: str, value: object) -> object:
    """A length of time in words as seconds, where the setting is one."""
    if name not in SECONDS or not isinstance(value, str):
        return value
    try:
        return duration(value)
    except UsageError as error:
        raise SettingError(f"{name} = {value!r}: {error.happened}", do=error.do) from None


def _unreadable(path: str, why: str) -> SettingError:
    return SettingError(
        f"The settings file {path} cannot be used: {why}", kept="Nothing was changed", do="Mend or remove it"
    )
