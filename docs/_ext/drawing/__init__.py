"""Drawings in SVG that take the width they are given, and whose letters keep their size.

Widths are in percent and heights in pixels, so that the same drawing fits a phone and a desk. `svg`
writes elements, numbers and colours; `rows` draws bars beneath their labels, `lines` points over an
axis, and `strips` the dots of a table's rows; `numbers` says times, rates and ratios in a few
digits. Neither the code nor its styles know what is drawn. Shared as well are the `peaks` that
vendors of devices publish.
"""
