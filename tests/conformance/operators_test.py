"""Operators of operators.txt against CPU. Known failures are in expected_failures.txt; one that passes fails."""

from __future__ import annotations

import pytest
import torch

from . import cases, checks, expected

if cases.DEVICE == "neuron" and not (hasattr(torch, "neuron") and torch.neuron.is_available()):
    pytest.skip("no device neuron; tests/python/install_test.py fails for it", allow_module_level=True)

KNOWN = expected.read()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", cases.cases(), ids=str)
def test_operator(case: cases.Case) -> None:
    reason = KNOWN.get(case)
    try:
        checks.run(case)
    except Exception as error:
        if reason is not None:
            pytest.xfail(reason)
        if isinstance(error, checks.Difference):
            pytest.fail(str(error), pytrace=False)
        raise
    if reason is not None:
        pytest.fail(f"passes now: take it out of expected_failures.txt (it said: {reason})", pytrace=False)


def test_expected_failures_name_existing_cases() -> None:
    unknown = set(KNOWN) - set(cases.cases())
    assert not unknown, f"no such case: {sorted(map(str, unknown))}"
