"""Let a build that only previews measurements call each function once more, at any moment.

It is executed before the first cell of a page, in its folder, whose copy of the timer it changes.

What torch.compile finds out once on a machine takes it ten seconds, which every page would pay
anew: of vector instructions it believes the processor, and its headers it takes from where all
programs of a user have them. It compiles in the page's process: another that helps would import
PyTorch first.
"""

import getpass
import importlib.metadata
import os
import pathlib

if (_timer := pathlib.Path("timer.py")).exists():
    with _timer.open("a") as _file:
        _file.write("\nPREVIEW, LONGEST_REST = True, 0.0\n")
    del _file

os.environ |= {"TORCHINDUCTOR_VEC_ISA_OK": "1", "TORCHINDUCTOR_COMPILE_THREADS": "1"}
# Nobody waits for the fastest code: to compile without most optimizations takes half of the time,
# and a quarter with XLA's older emitters. Pages that print what optimizations change, such as bits,
# profiles and the memory of a program, are compiled as in a recording.
_optimized = """
compiled/ffi compiled/kernels devices/one_code devices/pmap learn/attention learn/control_flow
learn/measuring learn/state models/adaptation models/convolutions models/deploying models/layers
models/long_sequences models/profile models/real_model models/same_numbers models/steps
pitfalls/control_flow pitfalls/derivatives pitfalls/numbers pitfalls/out_of_memory start/random_keys
training/fsdp_by_layer vectorizing/equations vectorizing/simulations
""".split()
_flags = """
--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true
--xla_cpu_parallel_codegen_split_count=1
""".split()
# Later versions end a process that names it.
if importlib.metadata.version("jax") == "0.10.2":
    _flags.append("--xla_cpu_use_fusion_emitters=false")
if os.environ.get("BOOK_LENT") or os.environ.get("BOOK_PAGE", "") not in ["", *_optimized]:
    os.environ["XLA_FLAGS"] = " ".join(_flags)
_page = pathlib.Path(os.environ["TMPDIR"])
_headers = pathlib.Path(f"torchinductor_{getpass.getuser()}", "precompiled_headers")
(_page.parent / _headers).mkdir(parents=True, exist_ok=True)
(_page / _headers.parent).mkdir(exist_ok=True)
(_page / _headers).symlink_to(_page.parent / _headers)
