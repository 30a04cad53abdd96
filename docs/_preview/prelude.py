"""Let a build that only previews measurements call each function once more, at any moment.

It is executed before the first cell of a page, in its folder, whose copy of the timer it changes.

What torch.compile finds out once on a machine takes it ten seconds, which every page would pay
anew: of vector instructions it believes the processor, and its headers it takes from where all
programs of a user have them. It compiles in the page's process: another that helps would import
PyTorch first.
"""

import getpass
import os
import pathlib

if (_timer := pathlib.Path("timer.py")).exists():
    with _timer.open("a") as _file:
        _file.write("\nPREVIEW, LONGEST_REST = True, 0.0\n")
    del _file

os.environ |= {"TORCHINDUCTOR_VEC_ISA_OK": "1", "TORCHINDUCTOR_COMPILE_THREADS": "1"}
# Nobody waits for the fastest code where a page shows what was recorded. Others print bits, which
# optimizations change, but for some with much to compile, which print the same text either way.
_same_text = """
models/modules models/requests devices/layouts devices/operations processes/cluster
processes/detection processes/distributed project/devices training/data_parallel
training/ddp_and_fsdp training/stages
""".split()
if os.environ.get("BOOK_LENT") or os.environ.get("BOOK_PAGE") in _same_text:
    os.environ["XLA_FLAGS"] = "--xla_backend_optimization_level=0"
_page = pathlib.Path(os.environ["TMPDIR"])
_headers = pathlib.Path(f"torchinductor_{getpass.getuser()}", "precompiled_headers")
(_page.parent / _headers).mkdir(parents=True, exist_ok=True)
(_page / _headers.parent).mkdir(exist_ok=True)
(_page / _headers).symlink_to(_page.parent / _headers)
