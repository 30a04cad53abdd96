"""Exercises of the lessons as files in a folder, checked whenever one is saved."""

import ast
import importlib.util
import json
import os
import pathlib
import re
import shutil
import subprocess
import symtable
import sys
import tempfile
import textwrap
import time

HERE = pathlib.Path(__file__).parent
# What checks read, beside the files as well.
TEXT = HERE / "projects" / "gpt" / "tiny_shakespeare.txt"
# What was solved when its file was last checked, beside the files.
KEPT = ".solved.json"
# Seconds for one exercise: most checks take less than one, and some of the last lesson train models.
LIMIT = 300
# Seconds between two looks at the files.
PAUSE = 0.3


class Lesson:
    """The exercises of one lesson: their module, their names, and the file of the reader."""

    def __init__(self, path, folder):
        """Take the path of the exercises in this package, and the reader's folder."""
        self.name, self.given = path.stem, path.read_text("utf8")
        # By the exercise: on what the last verdict depends, and the verdict.
        self.judged = {}
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

    def parts(self):
        """Return what an exercise depends on, by its name; comments and empty lines do not count.

        Empty where the file is no Python.
        """
        try:
            text = self.file.read_text("utf8")
            body, used = ast.parse(text).body, used_in(text)
        except (SyntaxError, ValueError, FileNotFoundError):
            return {}
        return {
            name: [
                ast.dump(node)
                for node in body
                if getattr(node, "name", name) in used.get(name, ())
                or not hasattr(node, "name")
            ]
            for name in self.exercises
        }

    def waiting(self, seen):
        """Return what to check after a save: what has changed, then what was not checked yet.

        `seen` is on what the exercises depended before.
        """
        now = self.parts()
        judged = {name: each[0] for name, each in self.judged.items()}
        changed = [
            name
            for name in self.exercises
            if now.get(name) != judged.get(name, seen.get(name))
        ]
        return changed + [
            name
            for name in self.exercises
            if name not in judged and name not in changed
        ]

    def checked(self, names, stop=bool):
        """Yield (name, what is not right or None, which others were given) of these exercises.

        Each is checked by itself: where one ends its process, the others follow in another. The
        name is None where the file as a whole cannot be checked. Ends before where `stop()` is
        true.
        """
        names, parts = list(names), self.parts()
        while names and not stop():
            for said in self._process(tuple(names), stop):
                name, problem = said.get("name"), said["problem"]
                given = said.get("given")
                if given is not None:
                    self.judged[name] = parts.get(name), problem, given
                yield name, problem, given or []
                if name is None:
                    return
                names.remove(name)

    def _process(self, names, stop):
        """Yield what a process says of exercises; of the last one perhaps how it ended."""
        right = [
            name
            for name, (_, problem, given) in self.judged.items()
            if problem is None and not given and name not in names
        ]
        # Lessons on several devices have eight; counts are those of a CPU everywhere.
        environment = os.environ | {
            "JAX_PLATFORMS": "cpu",
            "JAX_NUM_CPU_DEVICES": "8",
            "PYTHONPATH": os.pathsep.join([str(HERE.parent), *sys.path[1:]]),
        }
        with tempfile.TemporaryDirectory() as folder:
            answer = pathlib.Path(folder, "answer.jsonl")
            answer.touch()
            words = [
                "-m",
                f"{__package__}.checking",
                self.name,
                self.file.resolve(),
                answer,
                ",".join(names),
                ",".join(right),
            ]
            process = subprocess.Popen(
                [sys.executable, "-P", *words],
                env=environment,
                cwd=self.file.parent,
            )
            try:
                yield from _told(process, answer, stop)
            finally:
                process.kill()
                process.wait()


def _told(process, answer, stop):
    """Yield what a process writes about exercises, and why it ended before the last of them."""
    last, begun = time.monotonic(), {}
    with answer.open(encoding="utf8") as lines:
        while not stop():
            # What it wrote last is there once it has ended.
            ended = process.poll()
            while (line := _whole(lines)) is not None:
                last, begun = time.monotonic(), json.loads(line)
                if "problem" in begun:
                    yield begun
            if ended is not None:
                problem = f"the program ended with status {ended}"
            elif time.monotonic() - last > LIMIT:
                problem = f"it runs for more than {LIMIT} s"
            else:
                time.sleep(0.1)
                continue
            if "problem" not in begun:
                yield begun | {"problem": problem}
            return


def _whole(lines):
    """Return the next line of a file; None where it is not written to its end."""
    place = lines.tell()
    line = lines.readline()
    if line.endswith("\n"):
        return line
    lines.seek(place)
    return None


def used_in(text):
    """Return, by the name of each function of a module, those of the module that it uses.

    A function is among them itself, and so are those that the lines outside of functions use.
    Raises SyntaxError where the text is no Python.
    """
    top = symtable.symtable(text, "exercises", "exec")
    names = {getattr(node, "name", None) for node in ast.parse(text).body}
    outside = {s.get_name() for s in top.get_symbols() if s.is_referenced()}
    uses = {}
    for table in top.get_children():
        own = uses.setdefault(table.get_name(), set())
        own |= set(_globals(table))
    for name in uses.keys() - names:
        outside |= uses.pop(name)
    found = {}
    for name in uses:
        known, new = set(), {name} | outside & uses.keys()
        while new:
            known |= new
            reached = set().union(*(uses[each] for each in new))
            new = reached & uses.keys() - known
        found[name] = known
    return found


def _globals(table):
    """Yield the names outside of a function that it and those in it refer to."""
    for symbol in table.get_symbols():
        if symbol.is_global():
            yield symbol.get_name()
    for inner in table.get_children():
        yield from _globals(inner)


class Practice:
    """A folder with exercises, and which of them are solved."""

    def __init__(self, folder, asked=None):
        """Take the folder, and put into it the exercises that it lacks, of all lessons or one.

        A lesson is asked for by its number or its name. Raises LookupError where there is none.
        """
        self.folder = pathlib.Path(folder)
        paths = (HERE / "exercises").glob("[a-z]*.py")
        lessons = (Lesson(path, self.folder) for path in paths)
        self.lessons = [
            lesson
            for lesson in sorted(
                lessons, key=lambda each: (each.number, each.name)
            )
            if asked in (None, str(lesson.number), lesson.name)
        ]
        if not self.lessons:
            raise LookupError(
                f"there is no lesson {asked!r}: take a number of the course, "
                "or the name of a lesson's page, such as vmap"
            )
        self.folder.mkdir(parents=True, exist_ok=True)
        text = self.folder / TEXT.name
        reads = any(
            TEXT.name in lesson.part("checks") for lesson in self.lessons
        )
        if reads and not text.exists():
            shutil.copy(TEXT, text)
        for lesson in self.lessons:
            if not lesson.file.exists():
                lesson.file.write_text(lesson.given, "utf8")
        self.saved = {
            lesson.name: changed(lesson.file) for lesson in self.lessons
        }
        self.seen = {lesson.name: lesson.parts() for lesson in self.lessons}
        self.kept = self.folder / KEPT
        known = self.kept.read_text("utf8") if self.kept.exists() else "[]"
        self.solved = set(json.loads(known))

    def check(self, lesson, names=None, stop=bool):
        """Check exercises of a lesson, all unless some are named, and say and keep what came out.

        Ends before where `stop()` is true. Returns whether they could be checked.
        """
        print(lesson.file.name, flush=True)
        if missing := " ".join(lesson.missing()):
            needs = f"lesson {lesson.number} needs {missing}"
            print(f"  {needs}: pip install {missing}", flush=True)
            return False
        found = lesson.checked(names or lesson.exercises, stop)
        for name, problem, given in found:
            text = f"  ✗ {name}: {problem}" if problem else f"  ✓ {name}"
            if given:
                others = " and ".join(f"`{other}`" for other in given)
                text += f", with the solution of {others}"
            if name is None:
                text = f"  ✗ {problem}"
            print(
                textwrap.fill(text, 79, subsequent_indent="    "), flush=True
            )
            if name is None:
                return False
            key = f"{lesson.name}.{name}"
            (self.solved.discard if problem else self.solved.add)(key)
            solved = json.dumps(sorted(self.solved), indent=1)
            self.kept.write_text(solved, "utf8")
        return True

    def next(self):
        """Return (lesson, exercise) of the first that is not solved; None where all are."""
        for lesson in self.lessons:
            for name in lesson.exercises:
                if f"{lesson.name}.{name}" not in self.solved:
                    return lesson, name
        return None

    def say(self):
        """Say how far the reader is, and what comes next."""
        names = {
            f"{lesson.name}.{name}"
            for lesson in self.lessons
            for name in lesson.exercises
        }
        print(f"{len(self.solved & names)} of {len(names)} solved.", end=" ")
        if (found := self.next()) is None:
            print("That was the last one.", flush=True)
            return
        lesson, name = found
        print(f"Next: {name} in {lesson.file.name}.")
        print(f"To read: lesson {lesson.number}, {lesson.title}.", flush=True)

    def watch(self):
        """Check what has changed in each file that is saved, until all exercises are solved.

        The other exercises of the file follow, as far as they have not been checked yet; a save
        comes before them.
        """
        queue = []
        while self.next():
            for lesson in [
                each for each in self.lessons if self._is_new(each)
            ]:
                self.saved[lesson.name] = changed(lesson.file)
                queue = [lesson, *(each for each in queue if each != lesson)]
            if not queue:
                time.sleep(PAUSE)
            elif self._check_saved(queue[0]):
                queue.pop(0)

    def _is_new(self, lesson):
        """Say whether a file was saved and is not yet seen."""
        return changed(lesson.file) not in (None, self.saved[lesson.name])

    def _check_saved(self, lesson):
        """Check first what has changed in a file, then the rest; say whether that was all."""
        if not (names := lesson.waiting(self.seen[lesson.name])):
            print(f"{lesson.file.name} says what it said when it was checked.")
            return True

        def stop():
            return any(map(self._is_new, self.lessons))

        self.check(lesson, names, stop)
        if stop():
            return False
        self.say()
        return True


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


def practise(folder, once, asked=None):
    """Check the exercises of a folder once, or what changes in a file that is saved.

    Returns the exit status. `asked` is a lesson, by its number or name; None means all.
    """
    if importlib.util.find_spec("jax") is None:
        print("the exercises need JAX: pip install -U jax", file=sys.stderr)
        return 2
    try:
        practice = Practice(folder, asked)
    except LookupError as error:
        print(error.args[0], file=sys.stderr)
        return 2
    if once:
        checked = [practice.check(lesson) for lesson in practice.lessons]
        practice.say()
        return 1 if practice.next() or not all(checked) else 0
    count = len(practice.lessons)
    files = f"{count} file{'s' * (count > 1)}"
    print(f"{files} in {practice.folder}, checked when you save one.")
    print(
        "Ctrl-C ends this, and nothing is lost. A solution: jax-measured solution NAME"
    )
    practice.say()
    try:
        practice.watch()
    except KeyboardInterrupt:
        print()
    return 0
