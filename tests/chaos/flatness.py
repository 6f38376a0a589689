"""Is a figure flat over time? A line through its samples, and what it grew by from end to end. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, median

Sample = tuple[float, float]
# The beginning is left out: caches fill, code is compiled.
WARM_UP_SHARE = 0.25


@dataclass(frozen=True)
class Trend:
    """The line through the samples after the warm-up; ``growth`` is from its first to its last."""

    per_minute: float
    growth: float
    mean: float
    middle: float
    most: float

    def is_flat(self, share: float, least: float) -> bool:
        """Whether it grew by no more than a share of its mean, or by less than matters at all."""
        return self.growth <= max(share * self.mean, least)


def trend(samples: Sequence[Sample]) -> Trend:
    """``samples``: seconds and values, in order. Raises ValueError for fewer than four."""
    if len(samples) < 4:
        raise ValueError("a trend needs at least four samples")
    begin = samples[0][0] + WARM_UP_SHARE * (samples[-1][0] - samples[0][0])
    kept = [sample for sample in samples if sample[0] >= begin]
    times, values = [t for t, _ in kept], [v for _, v in kept]
    slope = _slope(times, values)
    return Trend(
        slope * 60, slope * (times[-1] - times[0]), fmean(values), median(values), max(values)
    )


def _slope(times: Sequence[float], values: Sequence[float]) -> float:
    mean_time, mean_value = fmean(times), fmean(values)
    spread = sum((t - mean_time) ** 2 for t in times)
    if not spread:
        return 0.0
    return sum((t - mean_time) * (v - mean_value) for t, v in zip(times, values, strict=True)) / (
        spread
    )
