"""The theme: every colour can be told apart and read, by day and by night."""

from __future__ import annotations

import pytest

from analysis import theme


def luminance(colour: str) -> float:
    """Relative luminance of a colour like #d55e00 (WCAG 2)."""
    channels = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = [each / 12.92 if each <= 0.04045 else ((each + 0.055) / 1.055) ** 2.4 for each in channels]
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    """Contrast of two colours, from 1 to 21 (WCAG 2)."""
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("bound", theme.BOUNDS.values(), ids=lambda bound: bound.name)
def test_the_letter_of_a_bound_is_legible_on_its_colour(bound: theme.Bound) -> None:
    """Cells carry a letter in an ink that stays as it is when the page turns dark."""
    assert contrast(bound.ink, bound.colour) >= 4.5
    assert bound.ink not in theme.AT_NIGHT
    assert bound.colour not in theme.AT_NIGHT


@pytest.mark.parametrize("ink", [theme.INK, theme.MUTED, theme.OVERHEAD_LINE.ink, theme.WORK_LINE.ink])
def test_words_are_legible_by_day_and_by_night(ink: str) -> None:
    """Text has a contrast of 4.5 or more to the paper of its time."""
    assert contrast(ink, theme.PAPER) >= 4.5
    assert contrast(theme.AT_NIGHT[ink], theme.AT_NIGHT[theme.PAPER]) >= 4.5


@pytest.mark.parametrize("line", [theme.OVERHEAD_LINE, theme.WORK_LINE])
def test_lines_are_seen_by_day_and_by_night(line: theme.Line) -> None:
    """What is no text has a contrast of 3 or more."""
    for paper in (theme.PAPER, theme.AT_NIGHT[theme.PAPER]):
        assert contrast(line.colour, paper) >= 3
