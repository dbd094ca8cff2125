"""Convolutions of libtn beside torch in the same run: GF/s of both and ratio torch time / our time.

Usage: bench/conv.py path/to/libtn.so [--threads 1,2] [--set small|resnet|depthwise|all] [--last] [--dtype f32|bf16]
"""

from __future__ import annotations

import argparse
import math
import os

import torch
from kernel_lib import Lib, race

# batch, in channels, out channels, size, kernel, stride, groups
SMALL = [
    (64, 1, 16, 8, 3, 1, 1),
    (64, 16, 32, 8, 3, 1, 1),
    (128, 32, 64, 8, 3, 1, 1),
    (32, 1, 32, 28, 3, 1, 1),
    (32, 32, 64, 14, 3, 1, 1),
    (64, 3, 32, 32, 3, 1, 1),
]
RESNET = [
    (4, 3, 64, 112, 7, 2, 1),
    (4, 64, 64, 56, 3, 1, 1),
    (4, 64, 256, 56, 1, 1, 1),
    (4, 128, 128, 28, 3, 1, 1),
    (4, 256, 256, 14, 3, 1, 1),
    (4, 256, 512, 14, 3, 2, 1),
    (4, 512, 512, 7, 3, 1, 1),
    (4, 256, 512, 14, 1, 2, 1),
]
DEPTHWISE = [(4, 32, 32, 56, 3, 1, 32), (4, 96, 96, 28, 3, 2, 96), (4, 64, 64, 28, 3, 1, 8)]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("lib", nargs="?", default=os.environ.get("TN_BENCH_LIB", "build/python/torch_neuronx/libtn.so"))
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--set", default="all")
    parser.add_argument("--dtype", default="f32")
    parser.add_argument("--last", action="store_true", help="channels_last")
    parser.add_argument("--kinds", default="forward,data,weight")
    args = parser.parse_args()
    dtype = {"f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16, "f64": torch.float64}[args.dtype]
    sets = {"small": SMALL, "resnet": RESNET, "depthwise": DEPTHWISE}
    shapes = sum(sets.values(), []) if args.set == "all" else sets[args.set]
    layout = torch.channels_last if args.last else torch.contiguous_format
    for threads in (int(t) for t in args.threads.split(",")):
        torch.set_num_threads(threads)
        lib = Lib(args.lib, threads)
        ratios: dict[str, list[float]] = {}
        for shape in shapes:
            n, c, o, size, kernel, stride, groups = shape
            pad = kernel // 2
            x = torch.randn(n, c, size, size).to(dtype).contiguous(memory_format=layout)
            w = torch.randn(o, c // groups, kernel, kernel).to(dtype).contiguous(memory_format=layout)
            y = torch.conv2d(x, w, None, stride, pad, 1, groups).contiguous(memory_format=layout)
            grad = torch.randn_like(y)
            flops = 2.0 * y.numel() * w[0].numel()
            line = f"{threads} {'x'.join(map(str, shape)):>22}"
            for kind in args.kinds.split(","):
                mask = [kind == "data", kind == "weight", False]

                def backward(mask: list[bool] = mask) -> tuple:
                    return torch.ops.aten.convolution_backward(
                        grad, x, w, None, [stride] * 2, [pad] * 2, [1, 1], False, [0, 0], groups, mask
                    )

                if kind == "forward":
                    out, theirs = (
                        torch.empty_like(y),
                        lambda: torch.conv2d(x, w, None, stride, pad, 1, groups),
                    )
                    call, expected = lib.conv(x, w, out, stride, pad, groups), y
                elif kind == "data":
                    out, theirs = torch.empty_like(x), backward
                    call, expected = lib.conv(out, w, grad, stride, pad, groups, kind), backward()[0]
                else:
                    out, theirs = torch.empty_like(w), backward
                    call, expected = lib.conv(x, out, grad, stride, pad, groups, kind), backward()[1]
                us, them = race(call, theirs)
                error = (out.double() - expected.double()).abs().max() / expected.double().abs().max()
                assert error < (1e-5 if dtype in (torch.float32, torch.float64) else 3e-2), (
                    shape,
                    kind,
                    error,
                )
                ratios.setdefault(kind, []).append(them / us)
                line += f" | {kind} {flops / us / 1e9:6.1f} {flops / them / 1e9:6.1f} {them / us:5.2f}"
            print(line, flush=True)
        for kind, values in ratios.items():
            print(
                f"{threads} threads {kind}: geometric mean {math.exp(sum(map(math.log, values)) / len(values)):.3f}, "
                f"lowest {min(values):.2f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
