"""What conf.py sets is checked before anything else, by builds and by commands alike."""


def refusal(project, *lines):
    """Return what a build and a command say of a conf.py, which must be the same."""
    project.configure(*lines)
    build, command = project.build(), project.run("recordings")
    assert build.status == 2 and command.returncode == 1
    assert "Configuration error!" in build.output and "Traceback" not in command.stderr
    said = command.stderr.strip()
    assert f"ConfigError: {project.root}/{said}\n" in build.output
    return said


def test_an_option_that_does_not_exist_is_refused_at_its_line(project):
    said = refusal(project, "book_processes = 3", "book_proceses = 3", "")
    lines = (project.root / "conf.py").read_text("utf8").splitlines()
    line = lines.index("book_proceses = 3") + 1
    assert said.startswith(
        f"conf.py:{line}: there is no option book_proceses; the nearest are book_processes"
    )
