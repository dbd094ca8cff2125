"""Matrix products of libtn beside torch.mm in the same run: GF/s and ratio torch time / our time.

Usage: bench/gemm.py path/to/libtn.so [--threads 1,2] [--set square|thin|gpt|batch|all] [--dtype f32|bf16]
The ctypes call costs us about 1 us, torch's own dispatch about the same.
"""

from __future__ import annotations

import argparse
import math
import os

import torch
from kernel_lib import Lib, race

SQUARE = [(s, s, s) for s in (64, 96, 128, 192, 256, 384, 512, 768, 1024)]
THIN = [(m, n, k) for m in (1, 8, 32) for n, k in ((768, 768), (3072, 768), (768, 3072), (1024, 1024), (4096, 4096))]
GPT = [
    (1024, 128, 128),
    (1024, 384, 128),
    (1024, 512, 128),
    (1024, 128, 512),
    (1024, 65, 128),
    (128, 384, 1024),
    (128, 512, 1024),
    (512, 128, 1024),
]
BATCH = [
    (64, 32, 32, 32),
    (32, 64, 64, 32),
    (32, 64, 32, 64),
    (48, 128, 128, 64),
    (48, 128, 64, 128),
    (8, 8, 8, 8),
]


def tensor(shape: tuple[int, ...], dtype: torch.dtype, is_transposed: bool) -> torch.Tensor:
    if is_transposed:
        return torch.randn(*shape[:-2], shape[-1], shape[-2]).to(dtype).transpose(-1, -2)
    return torch.randn(*shape).to(dtype)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("lib", nargs="?", default=os.environ.get("TN_BENCH_LIB", "build/python/torch_neuronx/libtn.so"))
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--set", default="all")
    parser.add_argument("--dtype", default="f32")
    parser.add_argument("--forms", default="nn,nt,tn")
    parser.add_argument("--shape", help="m,n,k instead of a set")
    args = parser.parse_args()
    dtype = {"f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16, "f64": torch.float64}[args.dtype]
    sets = {"square": SQUARE, "thin": THIN, "gpt": GPT, "batch": BATCH, "big": [(2048, 2048, 2048)]}
    shapes = sum(sets.values(), []) if args.set == "all" else sets[args.set] if not args.shape else []
    if args.shape:
        shapes = [tuple(int(x) for x in args.shape.split(","))]
    for threads in (int(t) for t in args.threads.split(",")):
        torch.set_num_threads(threads)
        lib = Lib(args.lib, threads)
        ratios: list[float] = []
        for shape in shapes:
            m, n, k = shape[-3:]
            lead = shape[:-3]
            line = f"{threads} {'x'.join(map(str, shape)):>16}"
            for form in args.forms.split(","):
                a = tensor((*lead, m, k), dtype, form[0] == "t")
                b = tensor((*lead, k, n), dtype, form[1] == "t")
                ours, theirs = torch.empty(*lead, m, n, dtype=dtype), torch.empty(*lead, m, n, dtype=dtype)
                multiply = torch.bmm if lead else torch.mm
                call = lib.gemm(a, b, ours)
                us, them = race(call, lambda: multiply(a, b, out=theirs))
                error = (ours.double() - a.double() @ b.double()).abs().max().item()
                bound = (
                    (1e-5 if dtype == torch.float32 else 1e-13 if dtype == torch.float64 else 2e-2) * math.sqrt(k) * 4
                )
                assert error <= bound, (shape, form, error)
                flops = 2.0 * math.prod(shape)
                ratios.append(them / us)
                line += f" | {form} {flops / us / 1e9:6.1f} {flops / them / 1e9:6.1f} {them / us:5.2f}"
            print(line, flush=True)
        print(
            f"{threads} threads: geometric mean {math.exp(sum(map(math.log, ratios)) / len(ratios)):.3f}, "
            f"lowest {min(ratios):.2f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
