"""Judge an executed cell: did it raise what its snippet declares, and nothing else?"""


def judge(cell):
    """Return what is wrong with the cell's outcome, or None.

    Three verdicts: the declared error did not come, another came instead, or
    an error came that no snippet declares.
    """
    error = next((out for out in cell.outputs if out.output_type == "error"), None)
    expected = cell.metadata.get("expected_error")
    if expected is None:
        if error is None:
            return None
        return f"raised {error.ename}, which no snippet declares\n{shown(error)}"
    declared = f"{expected['type']} with '{expected['fragment']}' in its message"
    if error is None:
        return f"did not raise: {expected['snippet']} declares {declared}"
    type_name = expected["type"].rpartition(".")[2]
    if error.ename != type_name or expected["fragment"] not in error.evalue:
        return (
            f"raised another error: {expected['snippet']} declares {declared}, "
            f"but this came\n{shown(error)}"
        )
    return None


def shown(error):
    """Return an error output as readers see it."""
    return "\n".join(error.traceback)
