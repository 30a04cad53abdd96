import sys

import pytest
import torch
import torch._dynamo.testing
import torch.utils.checkpoint

from snippets.claims import pytorch_docs

ONES = torch.ones(3)
LENGTHS = [(torch.ones(n), 1) for n in range(8)]


def test_a_graph_for_zero_one_and_all_other_lengths():
    assert pytorch_docs.compilations(pytorch_docs.shift, LENGTHS) == [1, 2] + [3] * 6
    assert pytorch_docs.compilations(pytorch_docs.shift, LENGTHS, dynamic=True) == [1, 2] + [3] * 6
    from_two = pytorch_docs.compilations(pytorch_docs.shift, LENGTHS[2:], dynamic=True)
    assert from_two == [1] * 6


def test_after_eight_graphs_no_further_is_made():
    calls = [(torch.ones(n), 1) for n in range(2, 14)]
    counts = pytorch_docs.compilations(pytorch_docs.shift, calls, dynamic=False)
    assert counts == [1, 2, 3, 4, 5, 6, 7, 8, 8, 8, 8, 8]


def test_compilations_calls_the_function_with_every_argument():
    seen = []

    def remember(x, by):
        seen.append(by)
        return pytorch_docs.shift(x, by)

    torch.compiler.reset()
    assert len(pytorch_docs.compilations(torch.compiler.disable(remember), LENGTHS)) == 8
    assert seen == [1] * 8


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_a_second_number_compiles_a_graph_for_all_further_ones(backend):
    torch.compiler.reset()
    counter = torch._dynamo.testing.CompileCounterWithBackend(backend)
    compiled = torch.compile(pytorch_docs.shift, backend=counter)
    results = [compiled(ONES, 0.5 + n) for n in range(6)]
    assert counter.frame_count == 2
    assert [result[0] for result in results] == [1.5 + n for n in range(6)]


def test_a_tensor_saves_the_second_graph_of_a_learning_rate():
    assert pytorch_docs.scheduled_steps(0.1, 4) == [1, 2, 2, 2]
    assert pytorch_docs.scheduled_steps(torch.tensor(0.1), 4) == [1, 1, 1, 1]


@pytest.mark.skipif(
    sys.version_info >= (3, 13),
    reason="on Python 3.13 PyTorch 2.11 makes one graph, or eight, by what was compiled before",
)
def test_a_counter_in_a_module_compiles_in_each_call():
    counting = pytorch_docs.Counting()
    counts = pytorch_docs.compilations(counting, [(ONES,)] * 10)
    assert counts == [1, 2, 3, 4, 5, 6, 7, 8, 8, 8]
    assert counting.calls == 10 and counting(ONES)[0] == 11


def test_bytes_kept_for_the_backward_pass():
    x = torch.ones(100, requires_grad=True)
    chain = pytorch_docs.chain
    assert pytorch_docs.bytes_kept(chain, x) == 4 * x.nbytes
    for mode in (torch.no_grad, torch.inference_mode):
        assert pytorch_docs.bytes_kept(pytorch_docs.under(mode, chain), x) == 0

    def checkpointed(x):
        return torch.utils.checkpoint.checkpoint(chain, x, use_reentrant=False)

    assert pytorch_docs.bytes_kept(checkpointed, x) == x.nbytes
    assert pytorch_docs.runs_with_checkpoint() == 2


def test_train_on_gives_the_features_as_gradient():
    torch.testing.assert_close(pytorch_docs.train_on(2 * ONES), 2 * ONES)


def test_train_on_refuses_tensors_of_inference_mode(raises_declared):
    with torch.inference_mode():
        features = ONES * 2
    raises_declared(pytorch_docs.train_on, features)


def test_a_network_has_the_size_that_is_asked_for():
    network = pytorch_docs.small_network(layers=3, width=5)
    assert len(network) == 6 and network(torch.ones(2, 5)).shape == (2, 5)
