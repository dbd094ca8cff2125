#!/usr/bin/env python3
"""Derives the polynomial coefficients of src/base/math_coefficients.inc.

Run: python tools/derive_math.py > src/base/math_coefficients.inc   (needs mpmath; about a minute)

Each row of TABLES is a function on an interval, the powers of its polynomial and a weight. A Remez exchange on a
fine grid finds the minimax polynomial; then coefficients are rounded to their format one after another, lowest
power first, and the rest is fitted again, so that the rounding of one is made good by the others.
"""

import re
import struct

import mpmath as mp

mp.mp.dps = 40
GRID = 1200


def to_f32(value):
    """Nearest float32 as mpf."""
    return mp.mpf(struct.unpack("<f", struct.pack("<f", float(value)))[0])


def to_f64(value):
    return mp.mpf(float(value))


def remez(xs, fs, ws, powers):
    """Minimax coefficients of sum c_k x^powers[k] for fs on xs with weights ws. Returns (coefficients, error)."""
    n = len(powers)
    if n == 0:
        return [], max(abs(f * w) for f, w in zip(fs, ws))
    rows = [[x**p for p in powers] for x in xs]
    count = len(xs)
    # Chebyshev points, skewed a little: symmetric ones make an odd or even system singular
    picks = [int(round((count - 1) * float(mp.mpf(1) / 2 - mp.cos(mp.pi * k / n) / 2) ** 1.07)) for k in range(n + 1)]
    best = None
    for _ in range(12):
        a = mp.matrix(n + 1, n + 1)
        b = mp.matrix(n + 1, 1)
        for i, pick in enumerate(picks):
            for k in range(n):
                a[i, k] = rows[pick][k]
            a[i, n] = (-1) ** i / ws[pick]
            b[i] = fs[pick]
        try:
            solution = mp.lu_solve(a, b)
        except ZeroDivisionError:  # remaining powers all odd or all even on a symmetric interval
            break
        c = [solution[k] for k in range(n)]
        errors = [(f - mp.fdot(c, row)) * w for f, row, w in zip(fs, rows, ws)]
        peak = max(abs(e) for e in errors)
        if best is None or peak < best[1]:
            best = (c, peak)
        if peak <= abs(solution[n]) * mp.mpf("1.0005"):
            break
        # one extreme per run of equal sign; drop the smaller end until n + 1 are left
        extremes = []
        for i, e in enumerate(errors):
            if extremes and (errors[extremes[-1]] > 0) == (e > 0):
                if abs(e) > abs(errors[extremes[-1]]):
                    extremes[-1] = i
            else:
                extremes.append(i)
        while len(extremes) > n + 1:
            extremes.pop(0 if abs(errors[extremes[0]]) < abs(errors[extremes[-1]]) else -1)
        if len(extremes) < n + 1:
            break
        picks = extremes
    return best


def derive(f, low, high, powers, weight, rounding):
    """Rounded coefficients by power, and the weighted error that is left."""
    xs = [low + (high - low) * (mp.mpf(1) - mp.cos(mp.pi * (i + mp.mpf(1) / 2) / GRID)) / 2 for i in range(GRID)]
    fs = [f(x) for x in xs]
    ws = [weight(x) for x in xs]
    powers = list(powers)
    result = []
    c = []
    while powers:
        fit = remez(xs, fs, ws, powers)
        c = fit[0] if fit else c[1:]
        c0 = rounding(c[0])
        result.append(c0)
        fs = [v - c0 * x ** powers[0] for v, x in zip(fs, xs)]
        powers.pop(0)
    return result, max(abs(v * w) for v, w in zip(fs, ws))


def hexf(value):
    """C hex float literal."""
    return re.sub(r"\.?0*p", "p", float(value).hex(), count=1)


LN2, PI = mp.log(2), mp.pi
SQRT_HALF = mp.sqrt(mp.mpf(1) / 2)


def tail(f, terms, power):
    """(f(x) - known low terms) / x^power, with the limit at 0 taken by Taylor."""

    def g(x):
        if abs(x) < mp.mpf(10) ** -6:
            x = mp.mpf(10) ** -6
        with mp.workdps(60):
            return (f(x) - sum(c * x**k for k, c in enumerate(terms))) / x**power

    return g


def odd_tail(f, power):
    """h with f(x) = x + x^power h(x^2), as a function of z = x^2."""

    def g(z):
        z = max(z, mp.mpf(10) ** -12)
        with mp.workdps(60):
            x = mp.sqrt(z)
            return (f(x) - x) / x**power

    return g


def erfinv_over_x(x):
    return mp.erfinv(x) / x


def x_of_w(w):  # w = -log(1 - x^2)
    return mp.sqrt(-mp.expm1(-w))


def erfinv_w(w):
    with mp.workdps(60):
        x = x_of_w(w if w > mp.mpf(10) ** -10 else mp.mpf(10) ** -10)
        return mp.erfinv(x) / x


def erfc_scaled(t):
    """(1 + 2a) exp(a^2) erfc(a) with a = 2 (1 + t) / (1 - t), the inverse of t = (a - 2) / (a + 2)."""
    a = 2 * (1 + t) / (1 - t)
    with mp.workdps(60):
        return (1 + 2 * a) * mp.exp(a * a) * mp.erfc(a)


# name, function, interval, powers, weight, format
one = lambda x: mp.mpf(1)
H = LN2 / 2
TABLES = [
    # exp(r) = 1 + r + r^2 q(r)
    ("exp_q", tail(mp.exp, [1, 1], 2), -H, H, range(5), lambda x: x * x, to_f32),
    # 2^r = 1 + r p(r)
    (
        "exp2_p",
        tail(lambda x: mp.mpf(2) ** x, [1], 1),
        mp.mpf(-0.5),
        mp.mpf(0.5),
        range(6),
        lambda x: x,
        to_f32,
    ),
    # log(1 + f) = f + f^2 q(f)
    ("log_q", tail(mp.log1p, [0, 1], 2), SQRT_HALF - 1, mp.sqrt(2) - 1, range(9), lambda x: x, to_f32),
    # sin r = r + r^3 h(r^2), cos r = 1 - r^2 / 2 + r^4 h(r^2) on |r| <= pi / 4
    ("sin_h", odd_tail(mp.sin, 3), mp.mpf(0), (PI / 4 * mp.mpf("1.001")) ** 2, range(3), lambda z: z, to_f32),
    (
        "cos_h",
        lambda z: (
            (mp.cos(mp.sqrt(max(z, mp.mpf(10) ** -12))) - 1 + max(z, mp.mpf(10) ** -12) / 2)
            / max(z, mp.mpf(10) ** -12) ** 2
        ),
        mp.mpf(0),
        (PI / 4 * mp.mpf("1.001")) ** 2,
        range(3),
        lambda z: z * z,
        to_f32,
    ),
    # tan r = r + r^3 h(r^2) on |r| <= pi / 4
    ("tan_h", odd_tail(mp.tan, 3), mp.mpf(0), (PI / 4 * mp.mpf("1.001")) ** 2, range(8), lambda z: z, to_f64),
    # asin r = r + r^3 h(r^2) on r <= 1/2
    ("asin_h", odd_tail(mp.asin, 3), mp.mpf(0), mp.mpf("0.2501"), range(5), lambda z: z, to_f32),
    # atan r = r + r^3 h(r^2) on r <= 1
    ("atan_h", odd_tail(mp.atan, 3), mp.mpf(0), mp.mpf(1), range(8), lambda z: z / mp.atan(1), to_f32),
    # erf x = x + x p(x^2) on x <= 1
    (
        "erf_p",
        lambda z: mp.erf(mp.sqrt(max(z, mp.mpf(10) ** -12))) / mp.sqrt(max(z, mp.mpf(10) ** -12)) - 1,
        mp.mpf(0),
        mp.mpf(1),
        range(7),
        one,
        to_f32,
    ),
    # erf x = 1 - exp(-x p(x)) on 1 <= x <= 4
    (
        "erf_tail",
        lambda x: -mp.log(mp.erfc(x)) / x,
        mp.mpf("0.999"),
        mp.mpf("4"),
        range(8),
        lambda x: x * mp.erfc(x),
        to_f32,
    ),
    # (1 + 2a) exp(a^2) erfc(a) = p(t), t = (a - 2) / (a + 2), 0 <= a <= 10.1, in f64
    ("erfc_p", erfc_scaled, mp.mpf(-1), mp.mpf("8.2") / mp.mpf("12.2"), range(15), one, to_f64),
    # log m = 2 z + z^3 p(z^2), z = (m - 1) / (m + 1), in f64
    (
        "logd_p",
        lambda z: (
            (2 * mp.atanh(mp.sqrt(max(z, mp.mpf(10) ** -12))) - 2 * mp.sqrt(max(z, mp.mpf(10) ** -12)))
            / max(z, mp.mpf(10) ** -12) ** mp.mpf("1.5")
        ),
        mp.mpf(0),
        mp.mpf("0.02945"),
        range(6),
        lambda z: z,
        to_f64,
    ),
    # 2^r on |r| <= 1/2 in f64
    ("exp2d_p", lambda r: mp.mpf(2) ** r, mp.mpf(-0.5), mp.mpf(0.5), range(8), one, to_f64),
    # erfinv(x) / x as a function of w = -log(1 - x^2): near and far
    (
        "erfinv_near",
        lambda t: erfinv_w(t + mp.mpf(2.5)),
        mp.mpf(-2.5),
        mp.mpf(2.5),
        range(12),
        lambda t: 1 / erfinv_w(t + mp.mpf(2.5)),
        to_f64,
    ),
    (
        "erfinv_far",
        lambda t: erfinv_w((t + 3) ** 2),
        mp.sqrt(5) - 3,
        mp.mpf("1.05"),
        range(10),
        lambda t: 1 / erfinv_w((t + 3) ** 2),
        to_f64,
    ),
]


def main():
    print("// Written by tools/derive_math.py: minimax coefficients, lowest power first. Error: weighted, as log2.")
    print("// TN_MATH_TABLE(name, type, count, coefficients...)")
    for name, f, low, high, powers, weight, rounding in TABLES:
        with mp.workdps(60 if name.startswith("erf") else 40):
            c, error = derive(f, low, high, powers, weight, rounding)
        kind = "float" if rounding is to_f32 else "double"
        suffix = "f" if rounding is to_f32 else ""
        print(f"// {name}: 2^{float(mp.log(error, 2)):.1f}")
        print(f"TN_MATH_TABLE({name}, {kind}, {len(c)},")
        text = [hexf(v) + suffix for v in c]
        for i in range(0, len(text), 4):
            print("  " + ", ".join(text[i : i + 4]) + ("," if i + 4 < len(text) else ")"))
    print("// 2 / pi in pieces of 28 bits")
    pieces = []
    with mp.workdps(100):
        rest = 2 / mp.pi
        for k in range(1, 8):
            piece = mp.floor(rest * mp.mpf(2) ** (28 * k)) / mp.mpf(2) ** (28 * k)
            rest -= piece
            pieces.append(hexf(piece))
    print(f"TN_MATH_TABLE(two_over_pi, double, {len(pieces)},")
    print("  " + ", ".join(pieces[:4]) + ",\n  " + ", ".join(pieces[4:]) + ")")


if __name__ == "__main__":
    main()
