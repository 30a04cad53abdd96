"""The notebook that readers download is read without Sphinx."""

SCRIPT = "python train.py\n# {measured} | all\n"


def test_a_notebook_holds_the_files_that_its_page_shows(project):
    project.page(
        "a/one",
        "For {download}`train.sh <run/train.sh>`, and {download}`run/train.sh`:",
        "```{literalinclude} run/train.sh\n:language: bash\n:caption: x\n```",
        "```{csv-table}\n:file: run/found.csv\n:header-rows: 1\n```",
        project.cell("1"),
    )
    folder = project.path("a/run").with_suffix("")
    folder.mkdir()
    (folder / "train.sh").write_text(SCRIPT)
    (folder / "found.csv").write_text('Rule,Found\n"a, b",1|2\n')
    build = project.build()
    assert build.green, build.output
    assert project.notebook("a/one").cells[0].source.partition("\n\n")[2] == (
        "For `train.sh`, and `run/train.sh`:\n\n"
        f"```bash\n{SCRIPT}```\n\n"
        "| Rule | Found |\n| --- | --- |\n| a, b | 1\\|2 |"
    )


def test_a_file_is_found_as_sphinx_finds_it(project):
    project.page(
        "a/one",
        "```{literalinclude} /a/train.sh\n```",
        "```{csv-table} A title\n:file: found.csv\n```",
        project.cell("1"),
    )
    project.path("a/train").with_suffix(".sh").write_text(SCRIPT)
    project.path("a/found").with_suffix(".csv").write_text("1,2\n")
    assert project.build().green
    prose = project.notebook("a/one").cells[0].source
    assert SCRIPT in prose and "| 1 | 2 |" in prose
    project.path("a/train").with_suffix(".sh").unlink()
    build = project.build(strict=False)
    assert "Traceback" not in build.output and "1 warning" in build.output
