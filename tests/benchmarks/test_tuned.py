import collections
import contextlib
import types

import jax
import numpy as np
import pytest
import tensorflow as tf
import torch

from snippets.benchmarks import race, tuned
from snippets.benchmarks import training_step as steps

BATCHES = {"mlp": 5, "cnn": 2}
WITH_COMPILER = pytest.mark.skipif(not race.has_cpp_compiler(), reason="no C++ compiler")


@pytest.fixture(params=BATCHES)
def name(request):
    return request.param


@pytest.fixture
def numbers(name):
    return steps.draw(name, BATCHES[name])


@pytest.fixture
def written(tmp_path, monkeypatch):
    """Let torch.compile find nothing that others have compiled, but take the processor as known."""
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    torch.compiler.reset()
    with torch._inductor.config.patch({"cpp.vec_isa_ok": True}):
        yield
    torch.compiler.reset()


def test_a_module_computes_what_the_network_does(name, numbers):
    weights, x, _ = numbers
    module, tensor, _ = tuned.module_and_data(name, numbers)
    exact = tuned.exact_result(name, numbers)
    assert race.largest_difference(module(tensor).detach(), exact) < 2e-6
    assert race.largest_difference(steps.MODELS[name](weights, x), exact) < 2e-6


def test_weights_come_back_as_they_were_given(name, numbers):
    module, _, _ = tuned.module_and_data(name, numbers)
    back = tuned.weights_of(module, numbers[0])
    assert list(back) == list(numbers[0])
    for key, array in numbers[0].items():
        np.testing.assert_array_equal(back[key], array)


def test_the_channels_are_last_where_they_should_be():
    module, x, _ = tuned.module_and_data("cnn", steps.draw("cnn", 2), channels_last=True)
    assert x.shape == (2, 3, 32, 32)
    for each in (x, module[0].weight, module[2].weight):
        assert each.is_contiguous(memory_format=torch.channels_last)


def test_a_step_in_float64_is_that_of_the_training_page(name, numbers):
    loss, weights = tuned.exact_step(name, numbers)
    start, *batch = jax.device_put(numbers)
    new, value = steps.train_step(start, batch, steps.MODELS[name])
    assert steps.error_of(value, new, (loss, weights)) < 2e-6
    assert weights[next(iter(weights))].dtype == np.float64


def test_every_eager_trainer_does_the_same_step(name, numbers):
    exact = tuned.exact_step(name, numbers)
    trainers = [
        tuned.trainer(name, numbers),
        tuned.trainer(name, numbers, fused=True, channels_last=name == "cnn"),
        tuned.trainer(name, numbers, tuned.searching_step, foreach=True),
    ]
    for call in trainers:
        call()
        assert tuned.error_of_step(call, numbers, exact) < 2e-6


def test_a_wrong_step_has_an_error(numbers, name):
    def idle(module, optimizer, x, y):
        return torch.nn.functional.mse_loss(module(x), y).detach()

    exact = tuned.exact_step(name, numbers)
    assert tuned.error_of_step(tuned.trainer(name, numbers, idle), numbers, exact) > 1e-4


def test_training_goes_on_from_the_last_step(numbers, name):
    call = tuned.trainer(name, numbers)
    losses = [call().item() for _ in range(4)]
    assert losses == sorted(losses, reverse=True)
    assert losses[0] > losses[-1]


def test_the_search_of_algorithms_ends_with_the_step(monkeypatch):
    seen = []
    monkeypatch.setattr(
        tuned, "sgd_step", lambda *args: seen.append((args, torch.backends.cudnn.benchmark))
    )
    tuned.searching_step(1, 2, 3, 4)
    assert seen == [((1, 2, 3, 4), True)]
    assert not torch.backends.cudnn.benchmark


def test_the_search_ends_with_an_error_too(monkeypatch):
    def failing(*args):
        raise ZeroDivisionError

    monkeypatch.setattr(tuned, "sgd_step", failing)
    with pytest.raises(ZeroDivisionError):
        tuned.searching_step(1, 2, 3, 4)
    assert not torch.backends.cudnn.benchmark


@WITH_COMPILER
def test_a_compiled_step_is_three_programs_and_the_same_step(written):
    numbers = steps.draw("mlp", 5)
    exact = tuned.exact_step("mlp", numbers)
    step = tuned.compiled_sgd_step()
    trainers = {
        "module": tuned.trainer("mlp", numbers, wrap=torch.compile),
        "step": tuned.trainer("mlp", numbers, step, foreach=True),
        "step_fused": tuned.trainer("mlp", numbers, step, fused=True),
    }
    notes = tuned.noted(trainers)
    for call in notes.values():
        call()
    counted = {key: len(call.programs) for key, call in notes.items()}
    assert counted == {"module@torch": 2, "step@torch": 3, "step_fused@torch": 0}
    for key, call in trainers.items():
        assert tuned.error_of_step(call, numbers, exact) < 2e-6, key
    events = {key: tuned.events_of(call) for key, call in notes.items()}
    ran = {key: tuned.programs_run(each) for key, each in events.items()}
    assert [len(each) for each in ran.values()] == [2, 3, 2]
    assert ran["step_fused@torch"] < ran["step@torch"]
    operators = {key: tuned.operators_run(each) for key, each in events.items()}
    assert operators["step_fused@torch"]["_fused_sgd_"] == 1
    assert operators["module@torch"]["add_"] == 6
    assert not operators["step@torch"].keys() & {"add_", "_fused_sgd_", "mm", "addmm"}
    for key in ("module@torch", "step@torch"):
        kernels = tuned.inductor_kernels(notes[key].programs)
        assert kernels.keys() == {"generated", "mm", "addmm"}
        assert kernels["generated"] >= 3
        assert sum(kernels[each] for each in ("mm", "addmm")) == 8
    assert tuned.what_ran(notes["step@torch"]).startswith("programs 3; ")


@WITH_COMPILER
def test_a_frozen_network_is_the_same(written, name, numbers):
    exact = tuned.exact_result(name, numbers)
    call = tuned.Noted(tuned.frozen_torch(name, numbers, channels_last=name == "cnn"))
    with tuned.freezing():
        assert race.largest_difference(tuned.result_of(call), exact) < 2e-6
    assert len(call.programs) == 1
    kernels = tuned.inductor_kernels(call.programs)
    del kernels["generated"]
    assert kernels.total() == {"mlp": 3, "cnn": 3}[name]
    assert not torch._inductor.config.freezing


def test_every_predictor_is_the_same(name, numbers):
    exact = tuned.exact_result(name, numbers)
    calls = tuned.predictors_jax(name, numbers) | tuned.predictors_torch(name, numbers)
    assert list(calls) == ["jit@jax", "frozen@jax", "eager", "inference_mode"]
    for key, call in calls.items():
        assert race.largest_difference(tuned.result_of(call), exact) < 2e-6, key
    assert calls["eager"]().requires_grad
    assert calls["inference_mode"]().is_inference()


def test_only_the_first_call_is_noted(monkeypatch):
    from torch._inductor.graph import GraphLowering

    calls = []

    def call():
        calls.append(GraphLowering.save_output_code)
        if GraphLowering.save_output_code:
            GraphLowering.save_output_code("text")
        return len(calls)

    monkeypatch.setattr(GraphLowering, "save_output_code", None)
    noted = tuned.noted({"a": call})["a@torch"]
    assert noted.programs is None
    assert [noted(), noted(), noted()] == [1, 2, 3]
    assert noted.programs == ["text"]
    assert calls[1:] == [None, None]


def test_generated_kernels_and_those_of_libraries_are_told_apart():
    text = """
cpp_fused_tanh_0 = async_compile.cpp_pybind(['float*'], r'''
extern "C" void kernel(float* in_out_ptr0)
''')
triton_poi_fused_add_1 = async_compile.triton('triton_', '''
def triton_poi_fused_add_1(in_ptr0):
''')
def call(args):
    # Graph fragment: %addmm = call_function[target=torch.ops.aten.addmm.default](args = (%p,))
    buf0 = empty_strided_cpu((4, 4), (4, 1), torch.float32)
    extern_kernels.addmm(reinterpret_tensor(a), b, out=buf0)
    cpp_fused_tanh_0(buf0)
    triton_poi_fused_add_1.run(buf0, 16, stream=stream0)
    buf1 = torch.ops.aten.convolution_backward.default(buf0, [1, 1])
    buf2 = torch.ops.inductor._alloc_from_pool(pool, 0)
    extern_kernels.addmm(buf0, b, out=buf2)
"""
    assert tuned.inductor_kernels([text]) == {
        "generated": 2,
        "addmm": 2,
        "convolution_backward": 1,
    }


def event(name, parent=None, device="CPU"):
    kind = types.SimpleNamespace(name=device)
    return types.SimpleNamespace(name=name, cpu_parent=parent, device_type=kind)


def test_operators_are_counted_without_views_and_parts():
    x = torch.ones(3, 4)
    events = tuned.events_of(lambda: torch.nn.functional.linear(x.t(), x.t()).view(16) + 1)
    counts = tuned.operators_run(events)
    assert counts == {"linear": 1, "add": 1}
    assert tuned.programs_run(events) == set()


def test_the_backward_pass_counts_too():
    events = tuned.events_of(tuned.trainer("mlp", steps.draw("mlp", 5)))
    counts = tuned.operators_run(events)
    assert counts["linear"] == 3
    assert counts["mm"] == 5
    assert counts["tanh"] == counts["tanh_backward"] == 2
    assert not counts.keys() & tuned.VIEWS


def test_what_belongs_to_a_program_is_no_operator():
    program = event(f"{tuned.PROGRAM} abc ##")
    product = event("aten::addmm", event("between", program))
    events = [program, product, event("aten::copy_", product), event("aten::mm", event("other"))]
    assert tuned.operators_run(events) == {"mm": 1}
    assert tuned.programs_run([*events, program]) == {program.name}


def test_kernels_and_graphs_of_a_gpu_are_counted():
    events = [
        event("aten::mm"),
        event("cudaGraphLaunch"),
        event("gemm", device="CUDA"),
        event("triton_poi_fused_0", device="CUDA"),
        event("Memcpy DtoD (Device -> Device)", device="CUDA"),
    ]
    assert tuned.on_the_gpu(events) == {"kernel": 2, "graph": 1}


def test_a_profile_waits_for_a_gpu(monkeypatch):
    called = []
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: called.append("wait"))
    monkeypatch.setattr(torch.profiler, "profile", fake_profile([event("gemm", device="CUDA")]))
    noted = tuned.Noted(lambda: called.append("call"))
    noted()
    assert tuned.what_ran(noted) == "on the GPU 1 (1 kernel)"
    assert called == ["call", "call", "wait"]


def fake_profile(events):
    @contextlib.contextmanager
    def profile(**options):
        yield types.SimpleNamespace(events=lambda: events)

    return profile


def test_xla_kernels_are_those_of_the_entry():
    text = """HloModule jit_f, is_scheduled=true, input_output_alias={ {0}: (0, {}, may-alias) }

%fused_computation (p: f32[2]) -> f32[2] {
  %p = f32[2]{0} parameter(0)
  ROOT %a = f32[2]{0} add(%p, %p)
}

%command_buffer (q: f32[2]) -> f32[2] {
  %q = f32[2]{0} parameter(0)
  ROOT %g = f32[2]{0} fusion(%q), kind=kLoop, calls=%fused_computation
}

ENTRY %main (x: f32[2]) -> (f32[2], f32[2]) {
  %x = f32[2]{0} parameter(0)
  %f = f32[2]{0} fusion(%x), kind=kCustom, backend_config={"fusion_config":{"kind":"__ynn_fusion"}}
  %c = (f32[2]{0}, s8[4]{0}) custom-call(%f), custom_call_target="__cublas$gemm"
  %k = f32[2]{0} call(%f), to_apply=%command_buffer
  %d = f32[] dot(%f, %k)
  ROOT %t = (f32[2]{0}, f32[2]{0}) tuple(%f, %k)
}
"""
    assert tuned.xla_kernels(text) == {"fusion": 1, "ynn_fusion": 1, "__cublas$gemm": 1, "dot": 1}


def test_a_compiled_step_of_jax_has_kernels():
    program = steps.compiled_step("mlp", 4)
    counts = tuned.xla_kernels(program.as_text())
    _, run = steps.steps_counted("mlp", 4, program)
    assert counts.total() == run


def test_operations_of_a_graph_are_counted():
    numbers = steps.draw("mlp", 5)
    step = steps.step_tensorflow(steps.mlp_tensorflow, numbers)
    counts = tuned.graph_operations(tf.function(step))
    assert counts["MatMul"] == 8
    assert not counts.keys() & {"Const", "ReadVariableOp", "Identity"}


def test_the_program_of_tensorflow_is_one_of_xla():
    step = steps.step_tensorflow(steps.mlp_tensorflow, steps.draw("mlp", 5))
    text = tuned.xla_of_tensorflow_function(tf.function(step, jit_compile=True))
    assert tuned.xla_kernels(text).total() > 5


def test_counts_are_told_with_the_most_frequent_first():
    counts = collections.Counter(mm=5, add=1, tanh=2)
    assert tuned.told(counts) == "8 (5 mm, 2 tanh, 1 add)"
    assert tuned.told(counts, most=1) == "8 (5 mm, …)"
    assert tuned.told(collections.Counter()) == "0"
