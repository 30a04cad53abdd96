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
# Of what is shown as it was recorded nobody waits for the fastest code. Other pages print bits,
# which optimizations change.
if os.environ.get("BOOK_LENT"):
    os.environ["XLA_FLAGS"] = "--xla_backend_optimization_level=0"
_page = pathlib.Path(os.environ["TMPDIR"])
_headers = pathlib.Path(f"torchinductor_{getpass.getuser()}", "precompiled_headers")
(_page.parent / _headers).mkdir(parents=True, exist_ok=True)
(_page / _headers.parent).mkdir(exist_ok=True)
(_page / _headers).symlink_to(_page.parent / _headers)
