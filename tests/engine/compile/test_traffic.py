"""The bytes that the steps of optimized programs read from main memory and write to it."""

import pytest

from _compile import hlo
from _compile.traffic import sizes, traffic


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        ("f32[3,5]{1,0}", [60]),
        ("(bf16[4,2]{1,0}, pred[3]{0}, s32[])", [16, 3, 4]),
        # In tiles of 8 by 128, of which the last axis in memory has the 128.
        ("f32[3,130]{1,0:T(8,128)}", [4 * 8 * 256]),
        ("f32[3,130]{0,1:T(8,128)}", [4 * 136 * 128]),
        ("bf16[2,3,130]{2,1,0:T(8,128)(2,1)}", [2 * 2 * 8 * 256]),
        ("f32[300]{0:T(256)}", [4 * 512]),
        ("f32[]{:T(128)}", [4]),
        # S(0) is the main memory.
        ("(f32[8,128]{1,0:T(8,128)S(1)}, f32[8,128]{1,0:T(8,128)S(0)})", [0, 4096]),
    ],
)
def test_an_array_takes_its_tiles_and_none_in_another_memory(shape, expected):
    assert sizes(shape) == expected


def of(text):
    return traffic(hlo.Optimized(text.splitlines()))


KEPT = """
ENTRY %main (x: f32[8,128]) -> f32[8,128] {
  %x = f32[8,128]{1,0:T(8,128)} parameter(0)
  %low = f32[]{:T(128)} constant(-inf)
  %start = (f32[8,128]{1,0:T(8,128)S(1)}, f32[8,128]{1,0:T(8,128)}, u32[]{:S(2)}) copy-start(%x)
  %most = f32[8]{0:T(256)S(1)} reduce(%x, %low), dimensions={1}, to_apply=%maximum
  %done = f32[8,128]{1,0:T(8,128)S(1)} copy-done(%start)
  %part = ((f32[8,128]{1,0:T(8,128)}), f32[8,64]{1,0:T(8,64)S(1)}, s32[]) slice-start(%x), slice={}
  %half = f32[8,64]{1,0:T(8,64)S(1)} slice-done(%part)
  %powers = f32[8,128]{1,0:T(8,128)S(1)} subtract(%done, %done)
  ROOT %sum = f32[8,128]{1,0:T(8,128)} add(%powers, %most)
}
"""


def test_what_stays_in_another_memory_is_not_counted():
    array, low = 4 * 8 * 128, 4
    # The argument is copied, reduced and cut in half; of the results only the sum goes back.
    assert of(KEPT) == array + (array + low) + array // 2 + array


FUSED = """
%cut_out (rows: f32[1000,256], at: s32[]) -> f32[256] {
  %rows = f32[1000,256]{1,0} parameter(0)
  %at = s32[] parameter(1)
  %renamed = f32[1000,1,256]{2,1,0} bitcast(%rows)
  %row = f32[1,1,256]{2,1,0} dynamic-slice(%renamed, %at, %zero, %zero), dynamic_slice_sizes={}
  ROOT %flat = f32[256]{0} bitcast(%row)
}

%put_in (all: f32[1000,256], new: f32[256], where: s32[]) -> f32[1000,256] {
  %all = f32[1000,256]{1,0} parameter(0)
  %new = f32[256]{0} parameter(1)
  %where = s32[] parameter(2)
  %as_row = f32[1,256]{1,0} bitcast(%new)
  ROOT %changed = f32[1000,256]{1,0} dynamic-update-slice(%all, %as_row, %where, %where)
}

ENTRY %main (x: f32[1000,256], n: s32[]) -> f32[1000,256] {
  %x = f32[1000,256]{1,0} parameter(0)
  %n = s32[] parameter(1)
  %one = f32[256]{0} fusion(%x, %n), kind=kLoop, calls=%cut_out
  %start = ((f32[1000,256]{1,0}, f32[256]{0}, s32[]), f32[1000,256]{1,0}, u32[]) \
fusion-start(%x, %one, %n), kind=kLoop, calls=%put_in
  ROOT %result = f32[1000,256]{1,0} fusion-done(%start)
}
"""


def test_of_an_array_that_is_cut_or_changed_in_place_only_the_part_counts():
    row, index = 4 * 256, 4
    assert of(FUSED) == (row + index + row) + (row + index + row)
