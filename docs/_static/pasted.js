// What a pasted text is besides an error of the list: a name or a parameter that one version of JAX
// has and another lacks, a log, a warning, an address of JAX's documentation, an error of another
// package. The finder of errors asks this script, and leads to what it says.
(() => {
  "use strict";

  const { element, at, load } = window.book;
  const NAMES = "_static/jax_names.js";
  const HABITS = "_static/habits.js";
  const ALWAYS = "_static/jax_always.js";
  const RAISED = "_static/raised.js";
  const TABLE = "start/translation.html";
  const code = (text) => element("code", {}, text);
  const link = (path, text) => element("a", { href: at(path) }, text);

  // Names that went before the oldest version that was asked, and what to write today.
  const OLD = {
    "jax.DeviceArray": ["0.4.10", "jax.Array"],
    "jax.abstract_arrays": ["0.4.20", "jax.core.ShapedArray"],
    "jax.api": ["0.2.21", "jax"],
    "jax.config": ["0.4.25", "jax.config, after import jax"],
    "jax.curry": ["0.4.25", "functools.partial"],
    "jax.experimental.PartitionSpec": ["0.4.11", "jax.sharding.PartitionSpec"],
    "jax.experimental.ann": ["0.3.2", "jax.lax.approx_max_k, jax.lax.approx_min_k"],
    "jax.experimental.global_device_array": ["0.4.9", "jax.Array"],
    "jax.experimental.loops": ["0.3.16", "jax.lax.scan, jax.lax.fori_loop"],
    "jax.experimental.maps": ["0.4.31", "jax.shard_map, jax.sharding.Mesh"],
    "jax.experimental.optimizers": ["0.3.0", "Optax"],
    "jax.experimental.optix": ["0.2", "Optax"],
    "jax.experimental.stax": ["0.3.0", "jax.example_libraries.stax"],
    "jax.interpreters.xla.DeviceArray": ["0.4.11", "jax.Array"],
    "jax.lax_linalg": ["0.2", "jax.lax.linalg"],
    "jax.linear_util": ["0.4.24", "jax.extend.linear_util"],
    "jax.numpy.DeviceArray": ["0.4.14", "jax.Array"],
    "jax.numpy.NINF": ["0.4.24", "-jnp.inf"],
    "jax.numpy.alltrue": ["0.4.16", "jnp.all"],
    "jax.numpy.cumproduct": ["0.4.16", "jnp.cumprod"],
    "jax.numpy.in1d": ["0.4.24", "jnp.isin"],
    "jax.numpy.issubsctype": ["0.4.24", "jnp.issubdtype(x.dtype, t)"],
    "jax.numpy.msort": ["0.4.9", "jnp.sort(x, axis=0)"],
    "jax.numpy.product": ["0.4.16", "jnp.prod"],
    "jax.numpy.row_stack": ["0.4.24", "jnp.vstack"],
    "jax.numpy.sometrue": ["0.4.16", "jnp.any"],
    "jax.ops.index": ["0.2.22", "x.at[…].set(…)"],
    "jax.ops.index_add": ["0.2.22", "x.at[…].add(…)"],
    "jax.ops.index_update": ["0.2.22", "x.at[…].set(…)"],
    "jax.partial": ["0.2.26", "functools.partial"],
    "jax.random.KeyArray": ["0.4.24", "jax.Array"],
    "jax.random.PRNGKeyArray": ["0.4.24", "jax.Array"],
    "jax.random.shuffle": ["0.4.31", "jax.random.permutation"],
    "jax.tree_multimap": ["0.3.16", "jax.tree.map"],
    "jax.tree_util.tree_multimap": ["0.3.16", "jax.tree.map"],
  };
  // What no version says, of names that are often met.
  const TODAY = {
    "jax.clear_backends": "jax.clear_caches",
    "jax.cloud_tpu_init": "nothing: import jax does it",
    "jax.core.Shape": "tuple[int, ...]",
    "jax.experimental.array_api": "jax.numpy",
    "jax.experimental.attrs": "jax.new_ref",
    "jax.experimental.export": "jax.export",
    "jax.experimental.host_callback": "jax.pure_callback, jax.experimental.io_callback, jax.debug.callback",
    "jax.experimental.pallas.gpu": "jax.experimental.pallas.triton",
    "jax.experimental.pjit.pjit_p": "jax.extend.core.primitives.jit_p",
    "jax.extend.core.primitives.pjit_p": "jax.extend.core.primitives.jit_p",
    "jax.experimental.x64_context": "jax.enable_x64",
    "jax.extend.core.primitives.xla_pmap_p": "nothing: there is no such primitive any more",
    "jax.extend.ffi": "jax.ffi",
    "jax.interpreters.xla.pytype_aval_mappings": "jax.core.pytype_aval_mappings",
    "jax.lax.infeed": "jax.experimental.io_callback",
    "jax.lax.outfeed": "jax.experimental.io_callback",
    "jax.lax.tie_in": "nothing: it did nothing",
    "jax.lib.xla_bridge": "jax.extend.backend",
    "jax.lib.xla_extension": "jax.errors.JaxRuntimeError, jax.Device and others",
    "jaxlib.xla_extension.ArrayImpl": "jax.Array",
    "jaxlib.xla_extension": "jax.errors.JaxRuntimeError, jax.Device and others",
    "jax.sharding.GSPMDSharding": "jax.NamedSharding",
    "jax.sharding.PmapSharding": "jax.NamedSharding",
    "jax.sharding.PositionalSharding": "jax.NamedSharding",
    "jax.sharding.use_mesh": "jax.set_mesh",
    "jax.util.safe_map": "map(f, xs, ys, strict=True), from Python 3.14 on",
    "jax.util.safe_zip": "zip(xs, ys, strict=True)",
    "jax.util.wraps": "functools.wraps",
    "jax.xla_computation": "jax.jit(f).lower(x).compiler_ir()",
    "ShapeDtypeStruct named_shape": "nothing in its place",
    "checkpoint concrete": "static_argnums",
    "clip a": "jnp.clip(x, …), the array by position",
    "clip a_max": "jnp.clip(x, max=…)",
    "clip a_min": "jnp.clip(x, min=…)",
    "export lowering_platforms": "platforms",
    "jit abstracted_axes": "jax.export with symbolic sizes",
    "nanpercentile interpolation": "method",
    "nanquantile interpolation": "method",
    "percentile interpolation": "method",
    "quantile interpolation": "method",
    "remat concrete": "static_argnums",
    "reshape newshape": "shape",
    "shard_map auto": "axis_names, the axes that are manual",
    "shard_map check_rep": "check_vma",
  };
  // Parameters of a function that moved: the new one never had them.
  const MOVED = new Set(["shard_map check_rep", "shard_map auto"]);

  // Pages of JAX's documentation that messages name, and pages of this book.
  const DOCS = [
    [/201\/sharding\S*#explicit/, "devices/operations.html", "explicit sharding, operation by operation"],
    [/201\/sharding|sharded-computation|Distributed_arrays|explicit-sharding/, "devices/arrays.html", "which device holds which shard"],
    [/201\/shard-map|shard_map/, "devices/shard_map.html", "collectives, one by one"],
    [/501\/export|export\/export/, "models/export.html#how-long-can-jax-read-a-file", "how long an export lasts"],
    [/501\/shape-poly|shape_poly/, "devices/one_code.html#leave-a-length-open", "symbolic sizes"],
    [/501\/compilation-cache|persistent_compilation_cache/, "tracing/first_step.html#a-folder-keeps-programs-for-the-next-run", "the cache on disk"],
    [/501\/multiprocess|multi_process/, "processes/distributed.html", "processes that compute together"],
    [/501\/transfer-guard|transfer_guard/, "pitfalls/debugging.html#transfer-guard-forbids-hidden-copies-to-the-device", "the transfer guard"],
    [/101\/state|stateful/, "learn/state.html", "state in JAX"],
    [/101\/pytrees|pytrees\.html/, "pitfalls/static_arguments.html#two-pytrees-don-t-match", "pytrees that do not match"],
    [/101\/random|random-numbers|jax\.random|typed-keys/, "start/random_keys.html", "keys"],
    [/101\/default_dtypes|current-gotchas|Common_Gotchas|default_dtypes/, "start/arrays.html#dtypes-32-bits-unless-you-ask", "float64 and float32"],
    [/type_promotion/, "pitfalls/numbers.html#jax-mixes-dtypes-unless-strict-mode-forbids-it", "mixed dtypes"],
    [/rank_promotion/, "pitfalls/shapes.html", "shapes that do not fit"],
    [/201\/callbacks|external-callbacks/, "pitfalls/side_effects.html#how-do-i-get-a-side-effect-on-purpose", "callbacks"],
    [/201\/slow-compilation/, "tracing/first_step.html", "where the time of the first step goes"],
    [/buffer-donation|buffer_donation/, "start/arrays.html#does-every-update-copy-the-array", "donation"],
    [/201\/control-flow|control-flow/, "pitfalls/control_flow.html", "branches and loops"],
    [/201\/gpu-memory|gpu_memory/, "pitfalls/out_of_memory.html", "memory"],
    [/201\/aot/, "tracing/first_step.html#compile-a-program-before-the-data-exist", "compiling beforehand"],
    [/301\/custom-|custom_jvp|custom_vjp/, "pitfalls/derivatives.html", "rules of your own"],
    [/301\/remat|gradient-checkpointing|jax\.checkpoint/, "models/memory.html#recomputing-keeps-fewer-activations", "recomputing activations"],
    [/nan-where/, "pitfalls/control_flow.html#fix-3-jnp-where", "where and nan"],
    [/installation\.html/, "pitfalls/installing.html", "installing JAX"],
    [/101\/transformations|201\/jit|jit-compilation/, "learn/tracing.html", "tracing"],
    [/internals\/constants/, "jaxprs/reading.html#an-array-from-outside-becomes-a-constant", "arrays that become constants"],
    [/migrate_pmap/, "devices/pmap.html", "pmap, and what replaces it"],
    [/pallas/, "compiled/kernels.html", "kernels in Pallas"],
    [/jax\.extend|changelog|api_compatibility/, "appendix/upgrades.html", "what changed from version to version"],
  ];

  // Where others talk about errors of a package.
  const REPOSITORIES = {
    blackjax: "blackjax-devs/blackjax",
    brax: "google/brax",
    chex: "google-deepmind/chex",
    diffrax: "patrick-kidger/diffrax",
    equinox: "patrick-kidger/equinox",
    flax: "google/flax",
    grain: "google/grain",
    haiku: "google-deepmind/dm-haiku",
    jax: "jax-ml/jax",
    jaxlib: "jax-ml/jax",
    keras: "keras-team/keras",
    lineax: "patrick-kidger/lineax",
    maxtext: "AI-Hypercomputer/maxtext",
    ml_dtypes: "jax-ml/ml_dtypes",
    mujoco: "google-deepmind/mujoco",
    numpy: "numpy/numpy",
    numpyro: "pyro-ppl/numpyro",
    optax: "google-deepmind/optax",
    optimistix: "patrick-kidger/optimistix",
    orbax: "google/orbax",
    qwix: "google/qwix",
    tensorflow: "tensorflow/tensorflow",
    tensorstore: "google/tensorstore",
    torch: "pytorch/pytorch",
    transformers: "huggingface/transformers",
    tunix: "google/tunix",
    warp: "NVIDIA/warp",
    xla: "openxla/xla",
  };
  const FAILS = "pitfalls/debugging.html#the-compiler-fails";
  const PACKAGE = /(?:(?:site|dist)-packages\/|\b(?=jax\/_src\/))(\w+)\//g;

  // Errors that are said by another package, or by Python, in words that JAX does not use.
  const CUDA = /^(?:\w+: )?CUDA (?:error: |driver init)/;
  const OTHERS = [
    ["PyTorch", CUDA],
    ["NumPy", /inhomogeneous shape|operands could not be broadcast together|not aligned: \d|matmul: Input operand|only (?:length-1|size-1) arrays can be converted|np\.\w+ was removed in the NumPy|numpy\.dtype size changed|compiled using NumPy 1/],
    ["Warp", /\bWarp CUDA error/],
    ["PyTorch", /mat1 and mat2|\btorch\.\w*OutOfMemoryError|CUDA out of memory\. Tried|Expected all tensors to be on the same device|TORCH_USE_CUDA_DSA|\btorch\.cuda\.|Error\(s\) in loading state_dict|\btorch\._dynamo/],
    ["TensorFlow", /OOM when allocating tensor|tensorflow\.python|\{\{function_node|OperatorNotAllowedInGraph|\btf\.function\b|(?<!org_tensorflow\/)tensorflow\/(?:core|stream_executor)\//],
    ["Python", /^(?:KeyError|FileNotFoundError|PermissionError|RecursionError|KeyboardInterrupt|UnboundLocalError|IndentationError|SyntaxError|NameError|AssertionError)\b(?!.*axis name)|'NoneType' object|\b(?:list|tuple|string) index out of range|missing \d+ required (?:positional|keyword)|takes \d+ positional arguments? but|too many values to unpack|not enough values to unpack|object is not (?:callable|iterable|subscriptable)/],
  ];

  // What to do about messages that no cell of the book raises, with their values; and whether no entry
  // is about them, however alike its words are.
  const ADVICE = [
    [/memory space vmem|exceeded vmem|vmem capacity|scoped vmem/i, () => ["This is VMEM, the fast memory of one core of a TPU, not the memory of the device: a kernel asks for more than its limit. Give it smaller blocks, or a higher ", code("vmem_limit_bytes"), " in its ", code("pltpu.CompilerParams"), "; ", link("compiled/kernels.html", "Kernels in Pallas"), " has such kernels."], true],
    [/RESOURCE_EXHAUSTED[^]*(?:pinned_host|host memory|host allocator)/, () => ["This is memory of the host, not of the device: what was offloaded to ", code("pinned_host"), " doesn't fit there."], true],
    [/^Fatal Python error: Segmentation fault|\bSIGSEGV\b|^(?:zsh: )?Illegal (?:hardware )?instruction|illegal hardware instruction|Segmentation fault \(core dumped\)/im, () => ["Compiled code has crashed, and Python says nothing of it. Run it with ", code("python -X faulthandler"), " to see your line. Usual causes: packages of versions that don't fit, and a program for another processor: ", link("pitfalls/installing.html", "see installing JAX"), "."], true],
    [/DLL load failed while importing (\w+)/, ([, name]) => ["Windows finds no library that ", code(name), " needs, or an older one that another package has loaded before. Install the newest Microsoft Visual C++ Redistributable, and import JAX first: ", link("pitfalls/installing.html", "see installing JAX"), "."], true],
    [/cpu_aot_loader|Machine type used for XLA:CPU compilation doesn't match/, () => ["The cache on disk holds a program that was compiled for another processor. The program goes on; if it is killed by SIGILL, delete the cache: ", link("tracing/first_step.html#a-folder-keeps-programs-for-the-next-run", "the cache on disk"), "."], true],
    [/gloo\/transport\/tcp\/device\.cc:\d+\] rv == 0/, () => ["The name of this machine has no address, and Gloo, by which JAX's processes on CPUs communicate, asks for it. Add the name that ", code("hostname"), " prints to ", code("/etc/hosts"), ": ", link("processes/distributed.html", "several processes"), "."], true],
    [/\b([\w.]+\.(?:cc|h)):\d+\] (?:Check failed|Non-OK-status)/, ([, file]) => ["XLA, or a library below it, has ended the process: a check of its own in ", code(file), " has failed. That is a fault of the compiler, not of your program: ", link(FAILS, "what to do when the compiler fails"), "."], true],
    [/The '(\w+)' attribute is not available on traced array/, ([, name]) => ["A traced array is on no device yet, so it has no ", code(name), " under ", code("jit"), ". With explicit axes its type has one, ", code("jax.typeof(x).sharding"), "; with automatic axes the compiler chooses later: ", code("jax.debug.inspect_array_sharding(x, callback=print)"), " shows it."], true],
    [/(list|tuple) indices must be integers or slices, not (?!\w*Tracer)(\w+)/, ([, kind, index]) => ["A ", code(kind), " of Python is indexed with ", index === "ellipsis" ? code("...") : [`a `, code(index)], ", as only arrays can be: look at what the line indexes. It may be a pytree, or a leaf that an optimizer has masked."].flat(), true],
    [/requires arguments to have the same dtypes, got (\w+), (\w+)/, ([, one, other]) => ["The dtypes are ", code(one), " and ", code(other), ". Convert one: ", code("x.astype(y.dtype)"), ". Functions of ", code("jnp"), " convert by themselves, those of ", code("lax"), " don't: ", link("pitfalls/numbers.html#jax-mixes-dtypes-unless-strict-mode-forbids-it", "mixed dtypes"), "."]],
    [/axis (-?\d+) is out of bounds for array of dimension (\d+)/, ([, axis, size]) => [`The code asks for axis ${axis}; the array has ${size === "0" ? "no axes" : `axes 0 to ${size - 1}`}. Print its shape.`]],
    [/index (-?\d+) is out of bounds for axis (\d+) with size (\d+)/, ([, index, axis, size]) => [`${size === "0" ? `Axis ${axis} is empty` : `Axis ${axis} has ${size} elements, and ${index} is beyond the last, ${size - 1}`}. NumPy and static indices of JAX raise this; a traced index would be clamped.`]],
    [/device_put\W* only accepts[^]*Received invalid value: (\S+)/, ([, value]) => [code(value), " is a name, and JAX wants the device: ", code("jax.device_put(x, jax.devices('gpu')[0])"), ", or nothing, since JAX uses the GPU by itself."]],
    [/spans non-addressable/, () => ["Other processes hold parts of this array. Read this process's own with ", code("x.addressable_shards"), ", or gather all with ", code("multihost_utils.process_allgather(x)"), ": ", link("processes/distributed.html", "processes that compute together"), "."]],
    [/No constant handler for type\W+(?:<class '[^']*Tracer)?/, () => ["A function that was defined while JAX traced, often a rule of ", code("custom_vjp"), " or ", code("custom_jvp"), ", uses a tracer of the outside. Pass it as an argument: ", link("pitfalls/derivatives.html", "rules of your own"), "."]],
    [/(?:Forward-mode d|D)ifferentiation rule for '(\w+)' not implemented/, ([, name]) => ["JAX has no derivative of ", code(name), " in this direction. Write one with ", code("jax.custom_jvp"), ", or keep it out of the gradient with ", code("jax.lax.stop_gradient"), ": ", link("pitfalls/derivatives.html", "derivatives"), "."]],
    [/Batching rule for '(\w+)' not implemented/, ([, name]) => [code("jax.vmap"), " cannot go through ", code(name), ". Call the function row by row with ", code("jax.lax.map"), "."]],
    [/MLIR translation rule for primitive '(\w+)' not found for platform (\w+)/, ([, name, platform]) => [code(name), ` has no code for ${platform}. Compute it on another device, or with other operations.`]],
    [/Cannot stack arrays with different numbers of dimensions/, () => ["All arrays need the same shape. ", code("jnp.concatenate"), " joins along an axis that is there already."]],
    [/Size of label '(\w)' for operand \d+ \((\d+)\) does not match previous terms \((\d+)\)/, ([, label, one, other]) => ["In this ", code("einsum"), " the letter ", code(label), ` stands for two sizes, ${other} and ${one}. Give them two letters, or transpose an operand.`]],
    [/must have shape \[\.\.\., n, n\], got ([^.]*\))/, ([, shape]) => ["The matrix has to be square, and its shape is ", code(shape), "."]],
    [/memory_space of all inputs/, () => ["One array is in the host's memory, the other in the device's. Move one: ", code("jax.device_put(x, jax.memory.Space.Device)"), "."]],
    [/Unrecognized config option: (\w+)/, ([, name]) => ["The installed version has no option ", code(name), ": it is misspelt, gone, or newer. Update the package that the line calls, or leave the option out."]],
    [/Cannot find valid initial parameters/, () => ["At each start that was tried the density of the model is nan or zero. Check the constraints of the parameters and the data, with ", code("numpyro.validation_enabled()"), ", or start with ", code("init_to_median"), "."]],
    [/scan body (?:output must be a pair|to return \(carry, y\))/, () => ["Return two things from the body, ", code("(carry, y)"), "; ", code("y"), " may be ", code("None"), "."]],
    [/does not support string indexing; got idx='?(\w+)/, ([, name]) => [code(name), " is a key, and this is an array, not a dictionary."]],
    [/Indexer must have integer or boolean type, got indexer with type (\w+)/, ([, dtype]) => ["The index is ", code(dtype), ". Write ", code("i.astype(int)"), ", or ", code("//"), " where ", code("/"), " computes it."]],
  ];

  // What comes first, whatever the words: what a check of Equinox says, unless it is of an entry of its
  // own, and an error of Python that a function which JAX called back has raised.
  const FIRST = [
    [/\b_?Eq(?:x|uinox)RuntimeError: (?!The maximum number of)/, "EquinoxRuntimeError: … Above is the stack"],
    [/^(?![^]*RuntimeError\b)[^]*\bin (?:pure|io)_callback_impl\b/, "JaxRuntimeError: INTERNAL: CpuCallback error"],
  ];

  const STATUS = /^\s*(?:INTERNAL|UNIMPLEMENTED|INVALID_ARGUMENT|FAILED_PRECONDITION|NOT_FOUND|UNKNOWN|ABORTED): /;

  const MISSES = /TRACING CACHE MISS|PERSISTENT COMPILATION CACHE MISS|Finished (?:tracing|XLA compilation)|Compiling \S+ with global shapes/;
  const LOGGED = /^(?:[IW](?:\d{4} [\d:.]+| \S+:\d+\])|(?:INFO|WARNING|DEBUG)[: ]|20\d\d-\S+ [\d:.,]+:? [IW] )/;

  const packagesOf = (text) => [...text.matchAll(PACKAGE)].map(([, name]) => name);

  // Whose errors to search: of the package whose file is the last frame, or that the type names.
  const repositoryOf = (text) => {
    const named = packagesOf(text).filter((name) => REPOSITORIES[name]);
    const [, typed] = /\b(\w+)\.(?:\w+\.)*\w*(?:Error|Exception)\b(?!.*\b\w+\.(?:\w+\.)*\w*Error\b)/s.exec(text) ?? [];
    const [, module] = /module '(\w+)[.']/.exec(text) ?? [];
    const last = module in REPOSITORIES ? module : typed in REPOSITORIES && !/^jax/.test(typed) ? typed : named.at(-1);
    return REPOSITORIES[last] ?? REPOSITORIES.jax;
  };

  // A part of JAX that asks another part for what it lacks: they are of different versions.
  const PARTS = "RuntimeWarning: JAX plugin";

  // The package besides JAX that asked for what JAX lacks.
  const askedBy = (text) => packagesOf(text).filter((name) => !/^jax(?:lib)?$/.test(name)).at(-1);

  // The row [name, since, …] of a table {module: [[names, …], …]}.
  const rowOf = (table, module, name) =>
    (table[module] ?? []).find(([names]) => names.split(" ").includes(name));

  // Modules of which the lists have no name that all versions have.
  const SELDOM = /experimental|interpreters|extend|example_libraries|jaxlib/;

  const updating = (text) => {
    const package_ = askedBy(text);
    if (package_) return ["The code that asks for it is that of ", code(package_), ": update this package, or install an older JAX."];
    return ["Look at the last line of the traceback that is not JAX's: if it is a package's, update it."];
  };

  // Of what came and went, when it came.
  const later = (came, oldest) => (came ? ` came after JAX ${oldest} (JAX ${came} has it), and` : "");

  const tooOld = (name, since) => [code(name), ` is newer than your JAX: JAX ${since} has it. Update JAX, which may need a newer Python.`];

  // What every version has: the installed one is older than them, or is not whole.
  const always = (name, { oldest, newest }, hedge = "") => [
    `${hedge}Every JAX from ${oldest} to ${newest} has `, code(name), ": yours is older, or later than this list, or only half installed, or Python has found another folder or file that is called jax. Print ",
    code("jax.__version__, jax.__path__"), ", and update JAX with ", code("pip install -U jax"), ".",
  ];

  const before = (full) => Object.keys(OLD).filter((each) => `${full}.`.startsWith(`${each}.`)).at(-1);

  // What is known of a name of JAX: that it is gone, that it is new, that it was never public.
  const ofName = (module, name, text, { gone, modules, oldest, newest, new: fresh }) => {
    const full = name ? `${module}.${name}` : module;
    const whole = Object.keys(modules).filter((each) => `${full}.`.startsWith(`${each}.`)).at(-1);
    const row = name && rowOf(gone, module, name);
    const came = name && rowOf(fresh, module, name);
    const old = before(full);
    if (/\b_src\b|^jaxlib\._|\._/.test(full)) {
      return [code(full), " is private: JAX changes it without notice. ", ...updating(text)];
    }
    if (row) {
      const [, since, exact, way, came] = row;
      const write = TODAY[full] ?? way.replaceAll("…", name);
      const told = write ? [TODAY[full] ? ["Write ", code(write)] : [`JAX says: ${write}`], ". "] : [];
      const when = exact ? ` since JAX ${exact}` : `: JAX ${since || oldest} has it no more`;
      return [code(full), `${later(came, oldest)} is gone${when}. `, ...told.flat(), ...updating(text)];
    }
    if (came) return tooOld(full, came[1]);
    if (whole && modules[whole][1]) return tooOld(whole, modules[whole][0]);
    if (whole) {
      const [since, , came] = modules[whole];
      const write = TODAY[full] ?? TODAY[whole];
      return [code(whole), `${later(came, oldest)} is gone: JAX ${since} has it no more. `, ...(write ? ["Write ", code(write), ". "] : []), ...updating(text)];
    }
    if (old) return [code(old), ` is gone since JAX ${OLD[old][0]}. Write `, code(OLD[old][1]), ". ", ...updating(text)];
    if (name && SELDOM.test(module)) {
      // Who imports a name from a module has the module.
      const why = text.includes(`import name '${name}'`) ? [" it went before, or is misspelt. "] : [" it is misspelt, or its module was not imported, which ", code("import jax"), " alone may not do. Write ", code(`from ${module} import ${name}`), ". "];
      return [code(full), ` neither came nor went from JAX ${oldest} to ${newest}:`, ...why, ...updating(text)];
    }
    return [`No version of JAX from ${oldest} to ${newest} has `, code(full), ". It is older, or misspelt. ", ...updating(text)];
  };

  const FORMS = [
    [/cannot import name '(?<name>\w+)' from '(?<module>jax(?:lib)?(?:\.[\w.]+)?)'/, "ImportError: cannot import name … from 'jax…'"],
    [/module '(?<module>jax(?:lib)?(?:\.[\w.]+)?)' has no attribute '(?<name>\w+)'/, "AttributeError: module 'jax' has no attribute"],
    [/\b(?:AttributeError|DeprecationWarning): (?<module>jax(?:\.\w+)*)\.(?<name>\w+) (?:was|is|has been) (?:deprecated|removed)/, "AttributeError: module 'jax' has no attribute"],
    [/No module named '(?<module>jax(?:lib)?\.[\w.]+)'(?!.*is not a package)/, "ModuleNotFoundError: No module named 'jax.config'"],
  ];
  // A name that arrays of JAX or of NumPy lack.
  const METHOD = /'(?:ArrayImpl|Array|\w*Tracer|numpy\.ndarray|jaxlib[\w.]*)' object has no attribute '(?<name>\w+)'/;
  const ARGUMENT = /\b(\w+?)(?:\.__(?:init|new)__)?\(\) got an unexpected keyword argument '(\w+)'/;
  const ARGUMENTS = "TypeError: clip() got an unexpected keyword argument";

  const last = (pattern, text) => [...text.matchAll(new RegExp(pattern, "g"))].at(-1);

  // What to write for a name or a parameter of PyTorch, with the row of the translation table.
  const habit = (name) => {
    const [write, row] = window.book.habits.names[name] ?? [];
    return write && [code(name), " is not JAX's name. Write, for example, ", code(write), "; ", link(`${TABLE}#${row}`, "the translation table"), " compares the two."];
  };
  const habitOf = (parameter) => {
    const write = window.book.habits.parameters[parameter];
    return write && [code(parameter), " is PyTorch's parameter. Write ", code(write), "; ", link(TABLE, "the translation table"), " has more."];
  };

  // What to say of a name or a parameter; null if the text has none. The table comes when needed.
  const renamed = (text, { type, message }, again) => {
    const found = FORMS.map(([pattern, row]) => [last(pattern, text), row]).filter(([each]) => each);
    const [form, row] = found.sort(([one], [other]) => other.index - one.index)[0] ?? [];
    const argument = last(ARGUMENT, text);
    if (/partially initialized module 'jax/.test(text)) {
      return { doubt: true, said: ["JAX was asked for something while it was starting: a file of yours is called ", code("jax.py"), ", or the parts of JAX are of different versions."] };
    }
    const [, owner, lacking] = /^\s*module '(\w+)(?:\.[\w.]+)?' has no attribute '(\w+)'/.exec(message) ?? [];
    if (owner && !/^jax(?:lib)?$|^flax$/.test(owner) && !form) {
      const asker = packagesOf(text).filter((name) => name !== owner).at(-1);
      const by = asker ? [", that of ", code(asker)] : [];
      return { doubt: true, said: [code(owner), " has no ", code(lacking), " in the version that is installed: it doesn't fit the code that asks for it", ...by, ". Update both, or install those of one time."] };
    }
    const [, made, lost] = /^\s*'(\w+)' object has no attribute '(\w+)'/.exec(message) ?? [];
    if (made && !METHOD.test(message)) {
      return { doubt: "some", said: ["This ", code(made), " has no ", code(lost), ": either it is not the object that the line expects, or the package that made it is of another version than the code that asks. Print its type, and update both."] };
    }
    const [, absent] = /No module named '((?!jax\b|jaxlib\b)[\w.]+)'/.exec(text) ?? [];
    if (absent && !form) {
      return { doubt: true, said: [code(absent), " is not installed for this Python, or its version has no such module."] };
    }
    const method = last(METHOD, text);
    if (!form && !argument && !method) return null;
    if (!window.book.jaxNames || !window.book.habits || !window.book.jaxAlways) {
      Promise.all([NAMES, HABITS, ALWAYS].map((path) => load(path))).then(again, () => {});
      return method ? null : { row: form && row, said: [] };
    }
    if (!form && !argument) {
      const said = habit(method.groups.name);
      return said ? { said, nothing: true } : null;
    }
    if (form) {
      const { module, name = "" } = form.groups;
      const asker = askedBy(text);
      const frame = packagesOf(text).at(-1);
      const unknown = !frame && /^jaxlib/.test(module) && name && !rowOf(window.book.jaxNames.gone, module, name);
      if (/^jax/.test(asker ?? "") || unknown || (frame && !asker && /^jaxlib|\._src/.test(module))) {
        return { row: PARTS, said: ["Parts of JAX are of different versions. Install ", code("jax"), ", ", code("jaxlib"), " and all plug-ins together."] };
      }
      const core = module === "jax.core" && /attribute/.test(row);
      const { gone, new: fresh } = window.book.jaxNames;
      const moved = rowOf(gone, module, name) || rowOf(fresh, module, name);
      const full = name ? `${module}.${name}` : module;
      const modules = window.book.jaxAlways.modules.split(" ");
      if (!moved && ((name && (window.book.jaxAlways.names[module] ?? "").split(" ").includes(name)) || modules.includes(full))) {
        return { said: always(full, window.book.jaxNames), nothing: true };
      }
      const own = !moved && habit(name);
      if (own) return { said: own, nothing: true };
      const said = ofName(module, name, text, window.book.jaxNames);
      // Of what warns, or is in no list, no entry is sure.
      const seldom = !moved && !before(full) && /attribute/.test(row) && name && SELDOM.test(module);
      if (/Warning$/.test(type) || seldom) return { doubt: true, said };
      return { row: core ? "AttributeError: module 'jax.core' has no attribute" : row, said };
    }
    const [, called, parameter] = argument;
    const key = `${called} ${parameter}`;
    const rows = window.book.jaxNames.parameters[called] ?? [];
    const [, since, came, , first] = rows.find(([name]) => name === parameter) ?? [];
    if (!since && (window.book.jaxAlways.parameters[called] ?? "").split(" ").includes(parameter)) {
      return { said: always(`${called}(${parameter}=…)`, window.book.jaxNames, "If this is JAX's function: "), nothing: true };
    }
    const own = !since && !MOVED.has(key) && habitOf(parameter);
    if (own) return { said: own, nothing: true };
    if (!since && !MOVED.has(key)) {
      const jaxs = rows.length ? ["None of JAX's functions ", code(called), " of these versions lost or got it. "] : [];
      return { doubt: true, said: [code(called), " has no parameter ", code(parameter), ". ", ...jaxs, "If it is another package's function, its version does not fit the code. ", ...updating(text)] };
    }
    if (came && !MOVED.has(key)) return { row: ARGUMENTS, said: [...tooOld(`${called}(${parameter}=…)`, since)] };
    const others = rows.filter(([, when, fresh]) => fresh && when === since).map(([name]) => name);
    const write = TODAY[key] ?? others.join(", ");
    const lacked = first
      ? `JAX ${first} has it, but JAX ${window.book.jaxNames.oldest} and JAX ${since} don't`
      : `JAX ${since} has it not`;
    return {
      row: ARGUMENTS,
      said: [code(called), " has no parameter ", code(parameter), MOVED.has(key) ? " any more. " : ` any more: ${lacked}. `, ...(write ? ["Write ", code(write), ". "] : []), ...updating(text)],
    };
  };

  // Everything that is known of a text: sentences, the entry that comes first if one must, whether
  // the list should be doubted, or "some" of it, unless an entry says just that, and where to search. `again` is called when more is known.
  window.book.pasted = (text, error, again) => {
    const { type, message } = error;
    const sentences = [];
    const named = renamed(text, error, again);
    if (named?.said.length) sentences.push(named.said);
    if (MISSES.test(text)) {
      sentences.push(["This looks like a log of what JAX compiles. ", link("tracing/retracing.html#paste-your-log", "Paste it into the field for logs"), ", which says why it compiles again."]);
    }
    const line = `${type && `${type}: `}${message}`.split("\n\n", 1)[0];
    const packages = packagesOf(text);
    if (!window.book.raised) load(RAISED).then(again, () => {});
    const whole = text.replace(/\x1b\[[\d;]*m/g, "");
    const { row: source, sentences: said = [] } = window.book.raised?.(whole, error, packages, Boolean(named), again) ?? {};
    sentences.push(...said);
    const [advice, found] = ADVICE.map((row) => [row, row[0].exec(whole)]).find(([, found]) => found) ?? [];
    if (advice) sentences.push(advice[1](found));
    const lowest = packages.at(-1);
    if (lowest && !/^jax(?:lib)?$/.test(lowest) && !source && !named) {
      sentences.push(["The last line of the traceback is in ", code(lowest), "."]);
    }
    const other = named || source ? undefined : OTHERS.find(([, words]) => words.test(line))?.[0];
    const own = other && !(other === "Python" && /^jax/.test(lowest ?? ""));
    const calls = other === "Python" && /missing \d+ required|takes (?:from )?\d+/.test(line);
    if (calls) sentences.push(["Look at the function that you pass to JAX: ", code("fori_loop"), " calls it with ", code("(i, x)"), ", ", code("scan"), " with ", code("(carry, x)"), ", ", code("while_loop"), " with ", code("(x)"), ", and ", code("jit"), ", ", code("grad"), " and ", code("vmap"), " with what you pass."]);
    if (own) sentences.push([`This is an error of ${other} itself, not of JAX.`]);
    if (!type && !message) sentences.push(["These are only the frames of a traceback. The lines after them say what the error is: paste them too."]);
    if (/Warning$/.test(type)) sentences.push(["This is a warning: the program goes on."]);
    else if (!type && message && text.trim().split("\n").every((each) => LOGGED.test(each))) {
      sentences.push(["This is a line of a log, not an error: the program goes on."]);
    }
    // Where no entry is sure: whose text it is.
    const unsure = [];
    const inside = [...text.matchAll(/\bjax\/_src\/([\w/]+\.py)", line \d+, in (\w+)/g)].at(-1);
    if (/^(?:JaxRuntimeError)?$/.test(type) && STATUS.test(message)) {
      unsure.push(["This text is of XLA, or of a library that it calls, not of Python: ", link(FAILS, "what to do when the compiler fails"), "."]);
    } else if (inside && !source && /^jax/.test(lowest)) {
      unsure.push(["It was raised inside of JAX, by ", code(inside[2]), " in ", code(inside[1]), "."]);
    } else if (!lowest && !source && !named && !advice && /(?:Error|Exception)$/.test(type)) {
      unsure.push(["Paste the whole traceback, not only its end: it names the package, and your line."]);
    }
    const pages = [...text.matchAll(/(?:docs\.jax\.dev|jax\.readthedocs\.io|github\.com\/(?:jax-ml|google)\/jax#)\S*/g)];
    // A name that JAX's objects lack is that of one entry.
    const [, needs] = /has no attribute '(\w+)'/.exec(line) ?? [];
    const page = pages.map(([address]) => DOCS.find(([pattern]) => pattern.test(address))).find(Boolean);
    if (page) sentences.push(["The message names a page of JAX's documentation; in this book see ", link(page[1], page[2]), "."]);
    const repository = own && other !== "Python" ? REPOSITORIES[{ NumPy: "numpy", PyTorch: "torch", TensorFlow: "tensorflow", Warp: "warp" }[other]] : repositoryOf(text);
    return { sentences, unsure, needs: named ? undefined : needs, row: named?.row ?? FIRST.find(([words]) => words.test(text))?.[1], source, doubt: named?.doubt || advice?.[2] || other === "NumPy" || ((own || advice) && "some"), nothing: named?.nothing || (other === "PyTorch" && CUDA.test(line)) || MISSES.test(text) && !/(?:Error|Exception)$/.test(type), repository };
  };
})();
