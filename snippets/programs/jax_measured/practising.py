"""Exercises of the lessons as files in a folder, checked whenever one is saved."""

import importlib.util
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap
import time

HERE = pathlib.Path(__file__).parent
# What checks read, beside the files as well.
TEXT = HERE / "projects" / "gpt" / "tiny_shakespeare.txt"
# What was solved when its file was last checked, beside the files.
KEPT = ".solved.json"
# Seconds: a check takes a few, most of them to import JAX; the last lesson trains eleven models.
LIMIT = 300
# Seconds between two looks at the files.
PAUSE = 0.3


class Lesson:
    """The exercises of one lesson: their module, their names, and the file of the reader."""

    def __init__(self, path, folder):
        """Take the path of the exercises in this package, and the reader's folder."""
        self.name, self.given = path.stem, path.read_text("utf8")
        head = re.match(r'"""Lesson (\d+), (.+): \w+ exercises\.', self.given)
        self.number, self.title = int(head[1]), head[2]
        self.exercises = re.findall(
            r"^def check_(\w+)", self.part("checks"), re.MULTILINE
        )
        # The reader may have begun it before a new lesson moved its number.
        begun = sorted(folder.glob(f"[0-9][0-9]_{self.name}.py"))
        numbered = folder / f"{self.number:02}_{self.name}.py"
        self.file = begun[0] if begun else numbered

    def part(self, kind):
        """Return the text of another module of this lesson."""
        return (HERE / kind / f"{self.name}.py").read_text("utf8")

    def missing(self):
        """Return the packages that the lesson imports, and that are not installed."""
        text = self.given + self.part("checks")
        names = re.findall(r"^(?:import|from) (\w+)", text, re.MULTILINE)
        return [
            name
            for name in dict.fromkeys(names)
            if importlib.util.find_spec(name) is None
        ]

    def checked(self):
        """Return what is not right about each exercise, None where nothing is, by its name."""
        with tempfile.TemporaryDirectory() as folder:
            answer = pathlib.Path(folder, "problems.json")
            # Lessons on several devices have eight; counts are those of a CPU everywhere.
            environment = os.environ | {
                "JAX_PLATFORMS": "cpu",
                "JAX_NUM_CPU_DEVICES": "8",
                "PYTHONPATH": os.pathsep.join(
                    [str(HERE.parent), *sys.path[1:]]
                ),
            }
            words = [
                "-m",
                f"{__package__}.checking",
                self.name,
                self.file.resolve(),
                answer,
            ]
            try:
                ended = subprocess.run(
                    [sys.executable, "-P", *words],
                    env=environment,
                    cwd=self.file.parent,
                    timeout=LIMIT,
                )
            except subprocess.TimeoutExpired:
                return dict.fromkeys(
                    self.exercises, f"it runs for more than {LIMIT} s"
                )
            if answer.exists():
                return json.loads(answer.read_text("utf8"))
        return dict.fromkeys(
            self.exercises, f"the program ended with status {ended.returncode}"
        )


class Practice:
    """A folder with exercises, and which of them are solved."""

    def __init__(self, folder):
        """Take the folder, and put into it the exercises that it lacks."""
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        if not (text := self.folder / TEXT.name).exists():
            shutil.copy(TEXT, text)
        paths = (HERE / "exercises").glob("[a-z]*.py")
        lessons = (Lesson(path, self.folder) for path in paths)
        self.lessons = sorted(
            lessons, key=lambda each: (each.number, each.name)
        )
        for lesson in self.lessons:
            if not lesson.file.exists():
                lesson.file.write_text(lesson.given, "utf8")
        self.saved = {
            lesson.name: changed(lesson.file) for lesson in self.lessons
        }
        self.kept = self.folder / KEPT
        known = self.kept.read_text("utf8") if self.kept.exists() else "[]"
        self.solved = set(json.loads(known))

    def check(self, lesson):
        """Check the exercises of a lesson, say what came out, and keep what is solved."""
        print(lesson.file.name, flush=True)
        if missing := " ".join(lesson.missing()):
            needs = f"lesson {lesson.number} needs {missing}"
            print(f"  {needs}: pip install {missing}", flush=True)
            return
        for name, problem in lesson.checked().items():
            key = f"{lesson.name}.{name}"
            (self.solved.discard if problem else self.solved.add)(key)
            text = f"  ✗ {name}: {problem}" if problem else f"  ✓ {name}"
            print(textwrap.fill(text, 79, subsequent_indent="    "))
        self.kept.write_text(json.dumps(sorted(self.solved), indent=1), "utf8")

    def next(self):
        """Return (lesson, exercise) of the first that is not solved; None where all are."""
        for lesson in self.lessons:
            for name in lesson.exercises:
                if f"{lesson.name}.{name}" not in self.solved:
                    return lesson, name
        return None

    def say(self):
        """Say how far the reader is, and what comes next."""
        count = sum(len(lesson.exercises) for lesson in self.lessons)
        print(f"{len(self.solved)} of {count} solved.", end=" ")
        if (found := self.next()) is None:
            print("That was the last one.", flush=True)
            return
        lesson, name = found
        print(f"Next: {name} in {lesson.file.name}.")
        print(f"To read: lesson {lesson.number}, {lesson.title}.", flush=True)

    def watch(self):
        """Check each file that is saved, until all exercises are solved."""
        while self.next():
            time.sleep(PAUSE)
            for lesson in self.lessons:
                now = changed(lesson.file)
                if now and now != self.saved[lesson.name]:
                    self.saved[lesson.name] = now
                    self.check(lesson)
                    self.say()


def changed(path):
    """Return when a file was last saved; None where it is not there, as while it is saved."""
    try:
        return path.stat().st_mtime_ns
    except FileNotFoundError:
        return None


def solution(name):
    """Print the solutions of the lesson that has an exercise; return the exit status.

    Where several lessons have one of this name, `name` is LESSON.NAME.
    """
    asked, _, exercise = name.rpartition(".")
    paths = (HERE / "exercises").glob("[a-z]*.py")
    lessons = (Lesson(path, HERE) for path in paths)
    found = [
        lesson
        for lesson in sorted(lessons, key=lambda lesson: lesson.number)
        if exercise in lesson.exercises
        and asked in ("", lesson.name, str(lesson.number))
    ]
    if len(found) == 1:
        print(found[0].part("solutions"), end="")
        return 0
    if not found:
        print(f"there is no exercise {name!r}", file=sys.stderr)
        return 2
    which = " and ".join(
        f"{lesson.number}, {lesson.title}" for lesson in found
    )
    print(
        f"lessons {which} have an exercise {name!r}: "
        f"jax-measured solution {found[0].number}.{name}, for example",
        file=sys.stderr,
    )
    return 2


def practise(folder, once):
    """Check all exercises of a folder once, or each file when it is saved; return the status."""
    if importlib.util.find_spec("jax") is None:
        print("the exercises need JAX: pip install -U jax", file=sys.stderr)
        return 2
    practice = Practice(folder)
    if once:
        for lesson in practice.lessons:
            practice.check(lesson)
        practice.say()
        return 1 if practice.next() else 0
    print(
        f"{len(practice.lessons)} files in {practice.folder}, checked when you save one."
    )
    print(
        "Ctrl-C ends this, and nothing is lost. A solution: jax-measured solution NAME"
    )
    practice.say()
    try:
        practice.watch()
    except KeyboardInterrupt:
        print()
    return 0
