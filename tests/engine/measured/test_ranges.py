"""Ranges are order statistics over processes, and no digit is written that they do not bear."""

import pytest

from drawing.numbers import rate_text, ratio_text, seconds_text
from measured.ranges import Range, ends, ratio_of_rounds
from measured.texts import compared, seconds_ranged, strays, times


@pytest.mark.parametrize(
    ("count", "rank"),
    [
        *[(count, 1) for count in range(1, 9)],
        *[(9, 2), (10, 2), (11, 2), (12, 3), (17, 5), (20, 6)],
    ],
)
def test_a_range_goes_from_a_rank_to_the_same_from_above(count, rank):
    # The ranks of the 95 % interval of the sign test, as tables of it have them.
    numbers = sorted(range(1, count + 1), key=lambda number: number % 3)
    assert ends(numbers) == (rank, count + 1 - rank)


def test_the_range_of_ten_is_from_the_second_to_the_ninth():
    found = Range.of([10.0, 1.0, 9.0, 2.0, 8.0, 3.0, 7.0, 4.0, 6.0, 5.0])
    assert found == Range(5.5, 2.0, 9.0, 10)


@pytest.mark.parametrize(
    ("found", "text"),
    [
        # The range decides how many digits are written: two or three.
        (Range(0.005, 0.0049, 0.0052, 10), "5.0 ms (4.9–5.2)"),
        (Range(0.00512, 0.00511, 0.00513, 10), "5.12 ms (5.11–5.13)"),
        (Range(0.00512, 0.0031, 0.0093, 10), "5.1 ms (3.1–9.3)"),
        (Range(0.332, 0.302, 0.361, 10), "330 ms (300–360)"),
        (Range(0.332, 0.331, 0.334, 10), "332 ms (331–334)"),
        (Range(1.0, 0.96, 1.25, 10), "1.0 s (0.96–1.2)"),
        # An end below the unit has two digits too.
        (Range(0.0012, 0.00055, 0.0031, 10), "1.2 ms (0.55–3.1)"),
        # The unit is that of the number as it is written.
        (Range(0.000998, 0.00096, 0.00134, 10), "1.00 ms (0.96–1.34)"),
        (Range(0.5, 0.5, 0.5, 10), "500 ms"),
        (Range(0.5, 0.4, 0.6, 1), "500 ms (one process)"),
        (Range(0.5, 0.5, 0.5, 1), "500 ms (one process)"),
    ],
)
def test_seconds_have_no_digit_that_their_range_does_not_bear(found, text):
    assert seconds_ranged(found) == text


@pytest.mark.parametrize(
    ("found", "text", "factor"),
    [
        (Range(2.2, 2.04, 2.38, 10), "2.2× slower (2.0–2.4)", "2.2× (2.0–2.4)"),
        (Range(0.5, 0.4, 0.625, 10), "2.0× faster (1.6–2.5)", "0.50× (0.40–0.62)"),
        (Range(123.4, 101.0, 161.0, 10), "120× slower (100–160)", "120× (100–160)"),
        (Range(1.2, 0.9, 1.4, 10), "cannot tell (0.90–1.4×)", "cannot tell (0.90–1.4×)"),
        (Range(1.0, 0.97, 1.03, 10), "about equal (within 4 %)", "about equal (within 4 %)"),
        (Range(1.015, 1.011, 1.019, 10), "about equal (within 2 %)", "about equal (within 2 %)"),
        (Range(1.0, 1.0, 1.0, 10), "about equal (within 1 %)", "about equal (within 1 %)"),
        (Range(1.05, 1.03, 1.08, 10), "1.05× slower (1.03–1.08)", "1.05× (1.03–1.08)"),
        # What is told lies on one side of 1 as it is written, too.
        (Range(1.4, 1.02, 1.5, 10), "1.4× slower (1.02–1.5)", "1.4× (1.02–1.5)"),
        (Range(1.04, 1.004, 1.06, 10), "1.04× slower (1.004–1.06)", "1.04× (1.004–1.06)"),
        # Code layout alone moves a function by so much.
        (Range(1.02, 1.02, 1.02, 10), "about equal (within 2 %)", "about equal (within 2 %)"),
        (Range(1.02, 1.01, 1.08, 10), "about equal (within 8 %)", "about equal (within 8 %)"),
        (Range(1.02, 1.01, 1.12, 10), "1.02× slower (1.01–1.1)", "1.02× (1.01–1.1)"),
        (Range(0.8, 0.7, 0.997, 10), "1.2× faster (1.003–1.4)", "0.80× (0.70–0.997)"),
        # One process says nothing of others.
        (Range(2.2, 2.2, 2.2, 1), "2.2× the time (one process)", "2.2× (one process)"),
        (Range(0.5, 0.5, 0.5, 1), "0.50× the time (one process)", "0.50× (one process)"),
        (Range(123.4, 123.4, 123.4, 1), "120× the time (one process)", "120× (one process)"),
        (Range(1.0, 1.0, 1.0, 1), "1.0× the time (one process)", "1.0× (one process)"),
    ],
)
def test_a_ratio_is_told_in_one_of_three_ways(found, text, factor):
    assert (compared(found), times(found)) == (text, factor)


@pytest.mark.parametrize(
    ("low", "high", "equal", "told"),
    [
        (0.92, 1.09, True, False),
        (0.9, 1.05, False, False),
        (1.0, 1.2, False, False),
        (1.005, 1.05, True, False),
        (1.005, 1.08, False, True),
        (0.5, 0.9, False, True),
    ],
)
def test_what_lies_on_one_side_is_told_unless_it_is_as_good_as_equal(low, high, equal, told):
    found = Range((low * high) ** 0.5, low, high, 10)
    assert (found.is_equal, found.differs) == (equal, told)


def test_the_ratio_the_other_way_round_is_the_inverse():
    one, other = [1.0, 2.0, 4.0, 9.0], [1.0] * 4
    for processes in (1, 2, 4):
        there = ratio_of_rounds([(one, other)] * processes)
        back = ratio_of_rounds([(other, one)] * processes).inverse
        assert there == Range(*(pytest.approx(each) for each in vars(back).values()))


def test_over_processes_it_is_the_median_of_their_ratios():
    # The rounds of all three have ratios from 1 to 3, and their median is 2.5.
    rounds = [([1.0, 2.0, 3.0], [1.0] * 3), ([3.0] * 3, [1.0] * 3), ([2.0, 2.5, 3.0], [1.0] * 3)]
    assert ratio_of_rounds(rounds) == Range(2.5, 2.0, 3.0, 3)
    # The medians of the processes are 10, 20, 30 and 10, 5, 10.
    rounds = [([10.0], [10.0]), ([20.0], [5.0]), ([30.0], [10.0])]
    assert ratio_of_rounds(rounds) == Range(3.0, 1.0, 4.0, 3)


@pytest.mark.parametrize(
    ("numbers", "groups"),
    [
        ([650, 651, 655, 660, 662, 670, 940, 950, 951, 960], [6, 4]),
        ([650, 651, 655, 660, 662, 670, 680, 690, 700, 960], []),
        ([650, 690, 730, 780, 830, 880, 930, 990, 1050, 1110], []),
        # The gap between two groups is wider than these.
        ([100, 150, 200, 270, 360, 600, 800, 1100, 1500, 2000], []),
        ([1.0], []),
        ([], []),
    ],
)
def test_two_modes_are_two_groups_of_processes(numbers, groups):
    found = Range(1.0, 1.0, 1.0, len(numbers), tuple(numbers))
    assert [len(group) for group in found.groups] == groups


def test_the_places_of_processes_are_by_logarithms():
    assert Range.of([1.0, 100.0, 10.0]).places == [0, 50, 100]
    assert Range.of([2.0, 2.0]).places == [0, 0]
    assert Range.of([3.0]).places == []
    assert Range.of([3.0, float("inf")]).places == []
    assert Range.of([1.0, 4.0, 100.0]).inverse.places == [0, 70, 100]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (2.5, "2.5 s"),
        (1234.0, "1230 s"),
        (0.3324, "332 ms"),
        (0.0025, "2.5 ms"),
        (1.234e-5, "12.3 µs"),
        (5e-8, "50 ns"),
        (0.9999, "1 s"),
        (0.0009999, "1 ms"),
    ],
)
def test_seconds_have_three_digits_and_a_unit(seconds, text):
    assert seconds_text(seconds) == text


@pytest.mark.parametrize(
    ("ratio", "text"),
    [
        (4.04, "4×"),
        (0.248, "0.25×"),
        (0.0000731, "0.000073×"),
        (17.4, "17×"),
        (123.4, "123×"),
        (1.019, "1.02×"),
        (1.003, "1.003×"),
        (0.996, "0.996×"),
        (1.00004, "1×"),
        (1, "1×"),
        (99.7, "100×"),
        (123456.7, "123000×"),
        (1.234e9, "1.23e+09×"),
        (1e300, "1e+300×"),
        (1e-21, "1e-21×"),
    ],
)
def test_ratios_have_two_digits(ratio, text):
    assert ratio_text(ratio) == text


def test_rates_are_in_gflops():
    assert rate_text(3.21e9) == "3.21 GFLOP/s"
    assert rate_text(1.5e13) == "15000 GFLOP/s"


@pytest.mark.parametrize("value", [10.0**power for power in range(-300, 300, 7)])
def test_no_number_is_long(value):
    for text in (ratio_text(value), seconds_text(value), rate_text(value)):
        assert len(text) <= 16


@pytest.mark.parametrize(
    ("numbers", "said"),
    [
        ([1.0] * 9 + [24.0], ["1 process of 10 took 24× the median."]),
        ([1.0] * 8 + [0.25, 4.0], ["2 processes of 10 took 0.25× and 4× the median."]),
        ([1.0] * 9 + [2.9], []),
        ([1.0] * 5 + [24.0] * 5, []),
    ],
)
def test_single_processes_far_from_the_median_are_said(numbers, said):
    assert strays(Range.of(numbers)) == said
