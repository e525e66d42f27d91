"""What docs/prometheus/ asks of Prometheus exists, and stays what it was called."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from cowpreload.metrics import COUNTER, DECLARED

HERE = Path(__file__).parent.parent.parent / "docs" / "prometheus"
SAMPLES = {each.sample_name: each for each in DECLARED}


def of_dashboard() -> Iterator[str]:
    board = json.loads((HERE / "grafana.json").read_text())
    for panel in board["panels"]:
        for target in panel["targets"]:
            yield target["expr"]
    for variable in board["templating"]["list"]:
        if variable["type"] == "query":
            yield variable["query"]["query"]


def of_alerts() -> Iterator[str]:
    yaml = pytest.importorskip("yaml")
    for group in yaml.safe_load((HERE / "alerts.yml").read_text())["groups"]:
        for rule in group["rules"]:
            assert set(rule) - {"for"} == {"alert", "expr", "labels", "annotations"}
            assert rule["annotations"]["summary"]
            yield rule["expr"]


@pytest.mark.parametrize("expressions", [of_dashboard, of_alerts])
def test_every_metric_that_is_asked_for_is_exported(expressions: object) -> None:
    """A renamed one would leave a panel empty, and an alert silent, for ever."""
    found = list(expressions())  # type: ignore[operator]
    assert len(found) > 5
    for expression in found:
        used = re.findall(r"cowpreload_\w+", expression)
        assert used
        assert set(used) <= set(SAMPLES), expression
        for name in used:
            rated = re.search(rf"(?:rate|increase)\({name}", expression)
            assert bool(rated) == (SAMPLES[name].kind == COUNTER), expression


def test_labels_that_are_asked_for_are_there() -> None:
    for expression in (*of_dashboard(), *of_alerts()):
        labels = {"server"}
        for name in re.findall(r"cowpreload_\w+", expression):
            labels |= set(SAMPLES[name].labels)
        for by in re.findall(r"by \((.*?)\)", expression):
            assert set(by.split(", ")) <= labels, expression
        for names in re.findall(r"\{(.*?)\}", expression):
            assert set(re.findall(r"(\w+)=", names)) <= labels, expression


def test_panels_do_not_lie_over_each_other() -> None:
    board = json.loads((HERE / "grafana.json").read_text())
    seen: set[tuple[int, int]] = set()
    for panel in board["panels"]:
        at = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(at["x"], at["x"] + at["w"])
            for y in range(at["y"], at["y"] + at["h"])
        }
        assert not cells & seen
        assert at["x"] + at["w"] <= 24
        seen |= cells
    assert len({panel["id"] for panel in board["panels"]}) == len(board["panels"])
