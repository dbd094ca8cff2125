"""`torchneuron verify`: its verdict follows from what it computes."""

from __future__ import annotations

import math

import pytest
import torch

from torch_neuronx import cli, verify


def test_verify_of_cpu_against_cpu_is_right(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["verify", "--device", "cpu"]) == 0
    assert "verdict: the device computes what CPU computes" in capsys.readouterr().out


def test_verify_of_the_device_is_right(capsys: pytest.CaptureFixture[str]) -> None:
    status = cli.main(["verify"])
    assert status == 0, capsys.readouterr().out


def test_a_wrong_result_and_an_exception_are_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    results = iter([torch.ones(2), torch.zeros(2)])
    monkeypatch.setattr(
        verify,
        "CHECKS",
        [
            ("wrong", lambda device: [next(results)], 1e-3),
            ("raises", lambda device: [torch.ones(1) @ None], 1e-3),
        ],
    )
    assert verify.main("cpu") == 1
    output = capsys.readouterr().out
    assert "WRONG" in output and "TypeError" in output and "verdict: wrong, raises not right" in output


def test_an_unusable_device_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert verify.main("cuda" if not torch.cuda.is_available() else "xpu") == 1
    assert "NOT AVAILABLE" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("actual", "expected", "wanted"),
    [
        (torch.tensor([1.0, 2.0]), torch.tensor([1.0, 4.0]), 0.5),
        (torch.tensor([math.nan]), torch.tensor([1.0]), math.inf),
        (torch.ones(2), torch.ones(3), math.inf),
        (torch.ones(2), torch.ones(2, dtype=torch.float64), math.inf),
    ],
)
def test_difference(actual: torch.Tensor, expected: torch.Tensor, wanted: float) -> None:
    assert verify.difference([actual], [expected]) == wanted
