"""The command `torchneuron`."""

from __future__ import annotations

import argparse


def main(arguments: list[str] | None = None) -> int:
    """Runs the subcommand and returns its exit status: 0 right, 1 wrong, 2 misused."""
    parser = argparse.ArgumentParser(prog="torchneuron", description="Tools for the PyTorch device neuron.")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    verify = commands.add_parser("verify", help="checks the device against CPU; exit status 0 if all is right")
    verify.add_argument("--device", default="neuron", help="device to check (default: neuron)")
    options = parser.parse_args(arguments)
    if options.command == "verify":
        from torch_neuronx import verify as verification

        return verification.main(options.device)
    raise AssertionError(options.command)


if __name__ == "__main__":
    raise SystemExit(main())
