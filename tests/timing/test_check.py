import ast
import json
import pathlib
import re
import subprocess
import sys

import pytest
from _ext.source.pages import read_page
from _ext.source.snippets import Library

from snippets.timing import check

ROOT = pathlib.Path(__file__).parents[2]
FOLDER = pathlib.Path(__file__).parent / "check"
RESULTS = FOLDER / "results.csv"
PAGES = sorted(
    path for path in (ROOT / "docs").rglob("*.md") if "_ext" not in path.relative_to(ROOT).parts
)
# PyTorch and TensorFlow not waiting is the same mistake, which has a section of its own.
SAME = {"synchronize": "wait"}


def samples(name):
    """Return {title: (blocks, set of (block, line, rule))} of a file of labelled timings."""
    found = {}
    for part in (FOLDER / f"{name}.md").read_text("utf8").split("\n## ")[1:]:
        title, text = part.split("\n", 1)
        blocks = [block for _, block in check.fences(text)]
        labels = set()
        for number, block in enumerate(blocks, 1):
            for line, code in enumerate(block.splitlines(), 1):
                for rule in code.partition("#!")[2].split():
                    labels.add((number, line, SAME.get(rule, rule)))
        found[title] = [re.sub(r" *#!.*", "", block) for block in blocks], labels
    return found


def found_in(blocks):
    cells = [check.Cell(number, 0, text) for number, text in enumerate(blocks, 1)]
    findings = check.Follower("\n".join(blocks)).follow(cells)
    return {(f.cell, f.line, SAME.get(f.rule, f.rule)) for f in findings}


def scores(name):
    """Return (timings, right ones, right findings, findings, mistakes, right ones silent)."""
    known = samples(name)
    results = {title: (found_in(blocks), labels) for title, (blocks, labels) in known.items()}
    silent = sum(not labels and not found for found, labels in results.values())
    right = sum(len(found & labels) for found, labels in results.values())
    return {
        "timings": len(known),
        "right": sum(not labels for _, labels in known.values()),
        "silent": silent,
        "mistakes": sum(len(labels) for _, labels in known.values()),
        "findings": sum(len(found) for found, _ in results.values()),
        "found": right,
    }
