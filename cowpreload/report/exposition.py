"""Prometheus' two text formats, as its own parsers read them.

Takes Families; gives the text of a scrape. Written by hand: at run time we need cffi
alone, and the format is a line a sample.
"""

from __future__ import annotations

from collections.abc import Sequence

from cowpreload.metrics import COUNTER, Family, Labels

TEXT = "text/plain; version=0.0.4; charset=utf-8"
OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")


def _labels(labels: Labels) -> str:
    shown = ",".join(f'{name}="{_escaped(value)}"' for name, value in labels)
    return f"{{{shown}}}" if shown else ""


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(value)


def exposition(families: Sequence[Family], *, openmetrics: bool = False) -> str:
    """The text of a scrape.

    Args:
        openmetrics: OpenMetrics 1.0 instead of the older format.
    """
    lines = []
    for family in families:
        metric = family.metric
        # The older format knows a counter by the name of its samples.
        name = metric.name if openmetrics else metric.sample_name
        lines.append(f"# HELP {name} {_escaped(metric.help)}")
        lines.append(f"# TYPE {name} {metric.kind}")
        if openmetrics and metric.unit and metric.kind != COUNTER:
            lines.append(f"# UNIT {name} {metric.unit}")
        lines += [
            f"{metric.sample_name}{_labels(labels)} {_number(value)}"
            for labels, value in family.samples
        ]
    if openmetrics:
        lines.append("# EOF")
    return "\n".join(lines) + "\n"


def wants_openmetrics(accept: str) -> bool:
    """Whether an Accept header prefers it, as Prometheus' own does."""
    return "application/openmetrics-text" in accept
