import numpy as np
import pytest
import tensorflow as tf

from snippets.claims import tensorflow_docs

ONES = tf.ones(3)
LENGTHS = [(tf.ones(n),) for n in (3, 4, 5, 6)]


@pytest.fixture(autouse=True)
def without_warnings_of_many_traces():
    before = tf.get_logger().level
    tf.get_logger().setLevel("ERROR")
    yield
    tf.get_logger().setLevel(before)


def after(calls, function=tensorflow_docs.first, **options):
    return tensorflow_docs.traces_after(function, calls, **options)


def test_traces_after_calls_with_every_argument():
    seen = []
    after([(n,) for n in range(3)], seen.append)
    assert seen == [0, 1, 2]


def test_numbers_that_are_equal_share_a_trace_whatever_their_kind():
    assert after([(3,), (3.0,), (4,)]) == [1, 1, 2]
    assert after([(1,), (True,), (1.0,)]) == [1, 1, 1]
    assert after([(tf.constant(3),), (tf.constant(3.0),)]) == [1, 2]

    def half(x):
        return x // 2 if isinstance(x, int) else x / 2

    traced = tf.function(half)
    assert traced(3).numpy() == 1 and traced(3.0).numpy() == 1 and half(3.0) == 1.5


def test_dictionaries_have_no_order_and_lists_have():
    assert after([({1: 2, 3: 4},), ({3: 4, 1: 2},)]) == [1, 1]
    assert after([([1, 2],), ([2, 1],)]) == [1, 2]


def test_other_variables_trace_again_only_if_two_become_one():
    a, b, c = (tf.Variable(float(n)) for n in range(3))
    assert after([(a, b), (b, c), (c, a)]) == [1, 1, 1]
    assert after([(a, b), (a, a), (b, b)]) == [1, 2, 2]


def test_open_lengths_and_reduced_retracing():
    assert after(LENGTHS) == [1, 2, 3, 4]
    assert after(LENGTHS, input_signature=[tf.TensorSpec([None])]) == [1, 1, 1, 1]
    assert after(LENGTHS, reduce_retracing=True) == [1, 2, 2, 2]
    assert after([(n,) for n in range(4)], reduce_retracing=True) == [1, 2, 3, 4]


def test_programs_are_counted_by_their_first_text(tmp_path):
    for name in ("a.before_optimizations.txt", "a.after_optimizations.txt", "b.before.txt"):
        (tmp_path / name).touch()
    assert tensorflow_docs.programs_in(tmp_path) == 1


def test_wrapping_again_traces_again():
    assert tensorflow_docs.wrapped_again(3) == 3


def test_a_variable_made_in_the_first_call_doubles_its_side_effects():
    scaled = tensorflow_docs.Scaled()
    assert scaled(3 * ONES).numpy().tolist() == [3, 3, 3]
    assert scaled.runs == 2
    scaled(ONES)
    assert scaled.runs == 2


def test_a_changed_attribute_is_not_seen():
    model, traced = tensorflow_docs.Biased(), tf.function(tensorflow_docs.add_bias)
    assert traced(model, tf.constant(1.0)) == 1
    model.bias = 5.0
    assert traced(model, tf.constant(1.0)) == 1
    assert tensorflow_docs.add_bias(model, tf.constant(1.0)) == 6


def test_recursion_traces_once_for_each_number():
    assert tensorflow_docs.count_down() == 6


def test_both_branches_are_traced():
    assert tensorflow_docs.branches_traced() == ["then", "else"]


def test_a_python_loop_is_unrolled_and_a_tensor_loop_is_not():
    def nodes(function, n):
        return len(tensorflow_docs.graph_of(function, n).node)

    assert nodes(tensorflow_docs.python_sum, 64) > nodes(tensorflow_docs.python_sum, 4) + 60
    few, many = (nodes(tensorflow_docs.tensor_sum, tf.constant(n)) for n in (4, 64))
    assert few == many
    for function in (tensorflow_docs.python_sum, tensorflow_docs.tensor_sum):
        assert tf.function(function)(5).numpy() == 10


def test_a_dataset_made_inside_puts_its_data_into_the_graph():
    data = np.ones((100, 100), np.float32)
    dataset = tf.data.Dataset.from_tensor_slices(data)
    inside = tensorflow_docs.graph_of(lambda: tensorflow_docs.sum_inside(data)).ByteSize()
    assert (
        inside > data.nbytes > tensorflow_docs.graph_of(tensorflow_docs.sum_of, dataset).ByteSize()
    )
    assert tensorflow_docs.sum_inside(data) == tensorflow_docs.sum_of(dataset) == 10_000


def test_second_unused_raises_where_it_is_computed(raises_declared):
    raises_declared(tensorflow_docs.second_unused, tf.constant([0.0]))
    assert tf.function(tensorflow_docs.second_unused)(tf.constant([0.0])).numpy() == [0]


def test_text_length_is_refused_by_xla():
    refused = tensorflow_docs.why_refused(tensorflow_docs.text_length, tf.constant([1.5]))
    assert refused == ("InvalidArgumentError", "AsString")
    assert tensorflow_docs.why_refused(tensorflow_docs.first, tf.constant([1.5])) is None
    assert tensorflow_docs.text_length(tf.constant([1.5])) == [8]


def test_numpy_copies_and_memoryview_shares():
    def shared(get):
        return np.shares_memory(get(), get())

    assert not shared(ONES.numpy)
    assert shared(lambda: np.asarray(memoryview(ONES)))


@pytest.mark.parametrize(("options", "repeats"), [({}, True), ({"jit_compile": True}, False)])
def test_xla_ignores_the_seed(options, repeats):
    drawn = tensorflow_docs.draws(lambda: tf.random.normal([8]), **options)
    assert tensorflow_docs.all_equal(drawn) is repeats


def test_stateless_numbers_repeat_and_are_others_in_xla():
    def stateless():
        return tf.random.stateless_normal([8], seed=[1, 2])

    graph = tensorflow_docs.draws(stateless)
    xla = tensorflow_docs.draws(stateless, jit_compile=True)
    assert tensorflow_docs.all_equal(graph) and tensorflow_docs.all_equal(xla)
    assert not np.allclose(graph[0], xla[0])


def test_power_is_that_of_a_matrix():
    matrix = tf.constant([[1, 1], [0, 1]])
    np.testing.assert_array_equal(tensorflow_docs.power(matrix, 5), [[1, 5], [0, 1]])
