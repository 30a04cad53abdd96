"""The example of a table on the page."""

from snippets.your_machine import index


def test_the_example_is_the_table_of_the_command(capsys):
    yours, book = {"a": [1e-3] * 5, "b": [2e-3] * 5}, {"a": [2e-3] * 5, "b": [1e-3] * 5}
    index.print_example(yours, {"A CPU": ("cpu", book), "A GPU": ("gpu", {"a": [3e-3] * 3})})
    head, *rows = (line.split("  ") for line in capsys.readouterr().out.splitlines())
    cells = [[text.strip() for text in row if text.strip()] for row in (head, *rows)]
    assert cells[0] == ["example", "yours", "A CPU", "A GPU", "yours against the book's"]
    assert cells[1] == ["a@jax", "1 ms", "2 ms", "3 ms", "2.0× faster (2.0–2.0)"]
    assert cells[2] == ["b@jax", "2 ms", "1 ms", "–", "2.0× slower (2.0–2.0)"]
    (other,) = [row for row in cells if row and row[0].startswith("other order")]
    assert "example/a@jax against example/b@jax is 2.0× faster" in other[0]
