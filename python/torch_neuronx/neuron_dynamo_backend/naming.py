"""Names of compiled graphs, as they appear in errors and metrics."""

import itertools
import os

_model_name = "model"
_graph_ids = itertools.count()


def set_model_name(name: str) -> None:
    """Sets the prefix of the names of graphs compiled from now on."""
    global _model_name
    _model_name = str(name)


def get_model_name() -> str:
    """The prefix of graph names; "model" unless set."""
    return _model_name


def get_rank() -> int:
    """The rank of this process (environment variable RANK), 0 outside of distributed programs."""
    return int(os.environ.get("RANK", "0"))


def next_graph_name(kind: str, model_name: str | None = None) -> str:
    """`<model>_<number>_<kind>`; kind is "forward", "backward" or "inference"."""
    return f"{model_name or _model_name}_{next(_graph_ids)}_{kind}"
