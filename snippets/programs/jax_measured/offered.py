"""What the command can measure: for each a page, a measurement, and a question.

The measurement names the cell of the page that makes it; all that this cell measures is
measured. The first ten that a machine can make are those of a run that is not told
otherwise. One process can make all of them, for none sets what another must not have.
Most are drawn as charts, and `bandwidth`, `arithmetic` and `passes` as a roofline.
"""

OFFERED = {
    "chains": (
        "benchmarks/selu",
        "elementwise/chain/1/jit@jax",
        "What does a chain of elementwise operations take, fused and not?",
    ),
    "gradients": (
        "vectorizing/per_example",
        "per_example/jit_of_vmap@jax",
        "What does the gradient of each of 64 examples take?",
    ),
    "small_calls": (
        "timing/dispatch",
        "small_calls/one/jit@jax",
        "What does a call cost that computes next to nothing?",
    ),
    "retracing": (
        "timing/wrong_timings",
        "gallery/jit_once@jax",
        "What does a new function in each iteration of a loop cost?",
    ),
    "training": (
        "benchmarks/training_step",
        "training_step/cnn/jit@jax",
        "What does a training step of a small model take?",
    ),
    "attention": (
        "benchmarks/attention",
        "attention/length/64/jit@jax",
        "What does attention over a short sequence take?",
    ),
    "staying": (
        "benchmarks/transfers",
        "transfers/staying/1000/there@jax",
        "What does a small function cost if its numbers come from NumPy and go back?",
    ),
    "bandwidth": (
        "benchmarks/ceilings",
        "ceilings/copy@jax",
        "How many bytes a second does memory move?",
    ),
    "arithmetic": (
        "benchmarks/ceilings",
        "ceilings/product/full@jax",
        "How many operations a second does a large matmul reach?",
    ),
    "passes": (
        "benchmarks/ceilings",
        "ceilings/pass/softmax_new@jax",
        "How close to the ceiling of memory do functions come?",
    ),
    "compiling": (
        "benchmarks/selu",
        "selu/small/jit@jax",
        "What is compiling an elementwise function worth?",
    ),
    "transfers": (
        "benchmarks/transfers",
        "transfers/in/1000@jax",
        "What does it take to bring an array from NumPy into a framework?",
    ),
    "products": (
        "benchmarks/matmul",
        "matmul/size/64@jax",
        "How fast are matmuls?",
    ),
    "sorting": (
        "benchmarks/sorting",
        "sorting/1000/sort@jax",
        "How fast are sorting, gathering, scattering and running sums?",
    ),
    "compiling_large": (
        "benchmarks/selu",
        "selu/jit@jax",
        "What is compiling worth for an array that no cache holds?",
    ),
    "dispatch": (
        "timing/dispatch",
        "dispatch/result@jax",
        "When does a call return, and when is its result ready?",
    ),
    "arguments": (
        "timing/dispatch",
        "small_calls/kinds/array@jax",
        "What do kinds of arguments cost in each call?",
    ),
    "round_trips": (
        "benchmarks/transfers",
        "transfers/smooth/1000/device@jax",
        "What do data cost that come from NumPy and go back?",
    ),
    "training_mlp": (
        "benchmarks/training_step",
        "training_step/mlp/jit@jax",
        "What is compiling a training step worth?",
    ),
    "convolution": (
        "benchmarks/convolution",
        "convolution/size/8/jit@jax",
        "What does a convolution take?",
    ),
    "recurrent": (
        "benchmarks/recurrent",
        "recurrent/16/scan@jax",
        "What do loops over the steps of a sequence take?",
    ),
}
