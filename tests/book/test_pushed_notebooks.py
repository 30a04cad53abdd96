"""What is published puts the notebooks of the site where Colab finds them."""

import pathlib
import subprocess

SCRIPT = pathlib.Path(__file__).parents[2] / ".ci" / "push_notebooks"


def test_the_notebooks_become_the_one_commit_of_a_branch(tmp_path):
    def git(*arguments):
        command = ["git", "-c", "user.name=a", "-c", "user.email=a@localhost", *arguments]
        done = subprocess.run(command, cwd=clone, check=True, capture_output=True, text=True)
        return done.stdout.split()

    clone, remote, site = (tmp_path / name for name in ("clone", "remote", "site"))
    clone.mkdir()
    git("init", "--quiet", "--bare", str(remote))
    git("init", "--quiet")
    git("remote", "add", "origin", str(remote))
    git("commit", "--quiet", "--allow-empty", "-m", "first")
    for text in ("1", "2"):
        for name in ("index.html", "_sources/a/one.ipynb", "_sources/a/one.md.txt"):
            (site / name).parent.mkdir(parents=True, exist_ok=True)
            (site / name).write_text(text, "utf8")
        packed = str(tmp_path / "artifact.tar")
        subprocess.run(["tar", "-cf", packed, "-C", site, "."], check=True)
        subprocess.run([SCRIPT, packed], cwd=clone, check=True, capture_output=True)
        git("fetch", "--quiet", "origin", "+notebooks:notebooks")
        assert git("ls-tree", "-r", "--name-only", "notebooks") == ["a/one.ipynb"]
        assert git("show", "notebooks:a/one.ipynb") == [text]
        assert git("rev-list", "--count", "notebooks") == ["1"]
    assert git("status", "--short") == []
