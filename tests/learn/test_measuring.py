"""A profile is printed as times and shares, longest first, under the reader's names."""

import jax
import jax.numpy as jnp

from snippets.learn.measuring import print_times, scopes_of
from snippets.models.profile import Event, operations, profiled


def test_times_are_added_up_by_label_and_printed_longest_first(capsys):
    spans = [("a.1", 0.0, 0.001), ("b.2", 0.0, 0.006), ("a.3", 0.004, 0.005)]
    events = [Event(*span, {"hlo_op": ""}) for span in spans]
    events.append(Event("Python", 0.0, 1.0, {}))
    print_times(events, lambda event: event.name[0])
    assert capsys.readouterr().out.splitlines() == ["   6.00 ms   75%  b", "   2.00 ms   25%  a"]


def test_each_operation_of_a_profile_has_the_scope_that_its_program_names():
    @jax.jit
    def ten_largest(w, x):
        with jax.named_scope("hidden"):
            y = jnp.tanh(x @ w)
        with jax.named_scope("largest"):
            return jnp.sort(y, axis=1)[:, -10:]

    compiled = ten_largest.lower(jnp.ones((8, 64)), jnp.ones((4, 8))).compile()
    compiled(jnp.ones((8, 64)), jnp.ones((4, 8))).block_until_ready()
    with profiled() as events:
        compiled(jnp.ones((8, 64)), jnp.ones((4, 8))).block_until_ready()
    scope = scopes_of(compiled)
    parts = {scope(event).split("/")[0] for event in operations(events)}
    assert {"hidden", "largest"} <= parts <= {"hidden", "largest", "?"}
