"""Make Settings of what a host was given, or say everything that is wrong with it.

Takes raw texts (command line, configuration file, ini, environment); gives a frozen
`Settings` or one SettingsError with all faults. Only this module reads COW_* variables.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Mapping, Sequence
from typing import Any, cast

from cowpreload.errors import SettingsError
from cowpreload.kinds import UWSGI, RawValue
from cowpreload.settings import DECLARED, Settings
from cowpreload.units import format_size


def why_mortal(settings: Settings) -> str:
    """Which other setting keeps the heap mortal, and why; "" if none does."""
    if settings.freeze == "off":
        return "freeze=off: immortality is a part of it"
    if settings.exit == "normal":
        return "exit=normal: a whole finalization needs objects that can be freed"
    return ""


def nearest(name: str, known: Sequence[str]) -> str:
    """` Did you mean x?`, or nothing if no name is near."""
    matches = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    return f"did you mean {matches[0]}?" if matches else f"known: {', '.join(known)}"


def unknown_faults(names: Sequence[str], host: str) -> list[str]:
    """A fault for each name with our prefix that is no setting of ours on `host`."""
    ini = host == UWSGI
    names_here = {each.option if ini else each.variable: each for each in DECLARED}
    known = [name for name, each in names_here.items() if host in each.hosts]
    faults = []
    for name in names:
        if name in known or not name.startswith("cow-" if ini else "cow_"):
            continue
        if name in names_here:
            others = " and ".join(names_here[name].hosts)
            faults.append(f"{name}: a setting for {others} alone; remove it")
        else:
            faults.append(f"{name}: no such setting; {nearest(name, known)}")
    return faults


# Read where the package is built and tested; no settings.
_ALSO_OURS = ("COW_SANITIZE", "COW_NEXT_ROOT", "COW_WERROR")
_PREFIX = "COW_"


def unknown_variables(
    environ: Mapping[str, str] | None = None,
) -> tuple[list[str], str]:
    """The COW_* variables that are no settings: faults, and a line on all others.

    Faults are those that can only be a slip of the pen: near a setting of two words or
    more. Somebody else's variable may begin with our prefix (COW_WORKERS), and must not
    stop a server.
    """
    environ = os.environ if environ is None else environ
    known = [each.environment.removeprefix(_PREFIX) for each in DECLARED]
    faults, others = [], []
    for name in sorted(each for each in environ if each.startswith(_PREFIX)):
        rest = name.removeprefix(_PREFIX)
        if rest in known or name in _ALSO_OURS:
            continue
        # Without the prefix, which would make any two short names similar.
        near = difflib.get_close_matches(rest, known, n=1, cutoff=0.85)
        meant = f"did you mean {_PREFIX}{near[0]}?" if near else ""
        if near and "_" in near[0]:
            faults.append(f"{name}: no such setting; {meant}")
        else:
            others.append(f"{name} ({meant})" if meant else name)
    note = f"cow: no settings of ours: {', '.join(others)}" if others else ""
    return faults, note


def read(
    given: Mapping[str, RawValue],
    environ: Mapping[str, str] | None = None,
    faults: Sequence[str] = (),
    immortal_why_not: str = "",
) -> Settings:
    """Make Settings of what a host was given.

    Args:
        given: raw values by attribute name (`max_private`); None is unset.
        environ: where COW_* is looked up for what is not given; os.environ. An empty
            variable is unset: so compose files and systemd units write it.
        faults: what the host found itself, to be reported along.
        immortal_why_not: why this interpreter can make no heap immortal, or "".

    Raises:
        SettingsError: with every fault.
    """
    environ = os.environ if environ is None else environ
    found = list(faults)
    values: dict[str, Any] = {}
    for declared in DECLARED:
        raw = given.get(declared.attribute)
        name = declared.key
        if raw is None and environ.get(declared.environment, "").strip():
            raw, name = environ[declared.environment], declared.environment
        if raw is None:
            continue
        parsed = []
        for text in declared.texts(raw):
            try:
                parsed.append(declared.parse(text))
            except ValueError as error:
                found.append(f"{name}={declared.show_text(text)}: {error}")
        if parsed:
            values[declared.attribute] = (
                tuple(parsed) if declared.repeatable else parsed[-1]
            )
    soft = cast("int | None", values.get("max_private"))
    hard = cast("int | None", values.get("max_private_hard"))
    if soft and hard and soft > hard:
        found.append(
            f"max-private={format_size(soft)}: is above max-private-hard="
            f"{format_size(hard)}; lower it, or raise max-private-hard"
        )
    settings = Settings(**values)
    why_not = immortal_why_not or why_mortal(settings)
    if settings.immortal == "on" and why_not:
        found.append(f"immortal=on: {why_not}; set it to auto or off")
    if found:
        raise SettingsError(found)
    return settings
