"""The code on the first page does what the page says, and is what was measured."""

import pathlib
import re

import jax
import numpy as np

from snippets.vectorizing import per_example

PAGE = pathlib.Path(__file__).parents[2] / "docs" / "index.md"


def test_the_code_gives_the_gradient_of_each_example():
    (code,) = re.findall(r"```python\n(.+?)\n```", PAGE.read_text("utf8"), re.DOTALL)
    *lines, last = code.splitlines()
    params = per_example.some_params(inputs=4, hidden=8)
    xs, ys = per_example.some_examples(count=3, inputs=4)
    names = {"jax": jax, "loss": per_example.loss, "params": params, "xs": xs, "ys": ys}
    exec("\n".join(lines), names)
    each = eval(last, names)
    for row in range(3):
        alone = jax.grad(per_example.loss)(params, xs[row], ys[row])
        for name, array in alone.items():
            np.testing.assert_allclose(each[name][row], array, rtol=1e-4, atol=1e-5)
