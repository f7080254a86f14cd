"""Means, standard errors and 95 % intervals of scores."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

T_975 = (
    *(12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228),
    *(2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086),
    *(2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042),
)
"""Student's t at 97.5 % for 1 to 30 degrees of freedom (any table of it); past that `t_975` has a series."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean and how sure it is.

    Attributes:
        mean: of the cases' means; None if there is nothing.
        stderr: its standard error; None if there is only one value.
        low: lower end of the 95 % interval; None where `stderr` is.
        high: upper end.
    """

    mean: float | None
    stderr: float | None = None
    low: float | None = None
    high: float | None = None


def t_975(freedom: int) -> float:
    """Student's t at 97.5 %: two-sided 95 % intervals."""
    if freedom < 1:
        raise ValueError("an interval needs at least two values")
    if freedom <= len(T_975):
        return T_975[freedom - 1]
    z = 1.959964
    return z + (z**3 + z) / (4 * freedom) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)


def estimate(by_case: Mapping[str, Sequence[float]]) -> Estimate:
    """Mean and standard error of scores.

    Repeats of a case are no cases of their own: the error is taken between the cases' means (as of clusters). With a
    single case it is taken between its repeats, and speaks of that case alone.
    """
    means = [sum(values) / len(values) for values in by_case.values() if values]
    if not means:
        return Estimate(None)
    values: Sequence[float] = means if len(means) > 1 else next(values for values in by_case.values() if values)
    n = len(values)
    mean = sum(values) / n
    if n < 2:
        return Estimate(mean)
    stderr = math.sqrt(sum((value - mean) ** 2 for value in values) / (n - 1) / n)
    half = t_975(n - 1) * stderr
    return Estimate(mean, stderr, mean - half, mean + half)
