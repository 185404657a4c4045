"""Networks with long short-term memory as cuDNN has them: ``jax.experimental.rnn``.

Weights are one vector: for each layer and direction the weights of the input and of the state, then
for each the two biases. The rows of each stand for four gates: input, forget, cell, output.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from funcgrad import lax, nn, numpy, random
from funcgrad.errors import DtypeError

__all__ = [
    "get_num_params_in_lstm", "init_lstm_weight", "lstm", "lstm_ref", "swap_lstm_gates",
    "unpack_lstm_weights",
]  # fmt: skip

Parts = tuple[dict[int, Any], dict[int, Any], dict[int, Any], dict[int, Any]]
"""Weights of the input, weights of the state, and both biases, by layer and direction."""


def _shapes(
    input_size: int, hidden_size: int, num_layers: int, bidirectional: bool
) -> list[tuple[int, ...]]:
    """Shapes of the parts of the weights, in order."""
    n = 2 if bidirectional else 1
    gates = 4 * hidden_size
    weights: list[tuple[int, ...]] = []
    for i in range(n * num_layers):
        weights += [(gates, input_size if i < n else n * hidden_size), (gates, hidden_size)]
    return [*weights, *[(gates,)] * len(weights)]


def _parts(weights: Any, shapes: list[tuple[int, ...]]) -> list[Any]:
    """The parts of the weights."""
    ends = np.cumsum([math.prod(shape) for shape in shapes]).tolist()
    starts = [0, *ends[:-1]]
    return [weights[a:b].reshape(shape) for a, b, shape in zip(starts, ends, shapes, strict=True)]


def get_num_params_in_lstm(
    input_size: int, hidden_size: int, num_layers: int, bidirectional: bool
) -> int:
    """How many weights a network has.

    Args:
        input_size: Numbers in an element of the sequence.
        hidden_size: Numbers in the state.
        num_layers: Layers.
        bidirectional: Whether each layer runs in both directions.
    """
    shapes = _shapes(input_size, hidden_size, num_layers, bidirectional)
    return sum(math.prod(shape) for shape in shapes)


def init_lstm_weight(
    rng: Any, input_size: int, hidden_size: int, num_layers: int, bidirectional: bool
) -> Any:
    """Weights, uniform between plus and minus the inverse root of the size of the state.

    Args:
        rng: A random key.
        input_size: As in `get_num_params_in_lstm`, and so are the others.
        hidden_size: Numbers in the state.
        num_layers: Layers.
        bidirectional: Whether each layer runs in both directions.
    """
    count = get_num_params_in_lstm(input_size, hidden_size, num_layers, bidirectional)
    bound = math.sqrt(1 / hidden_size)
    return random.uniform(rng, (count,), np.float32, -bound, bound)


def unpack_lstm_weights(
    weights: Any, input_size: int, hidden_size: int, num_layers: int, bidirectional: bool
) -> Parts:
    """The parts of the weights, by layer and direction.

    Args:
        weights: The vector.
        input_size: As in `get_num_params_in_lstm`, and so are the others.
        hidden_size: Numbers in the state.
        num_layers: Layers.
        bidirectional: Whether each layer runs in both directions.
    """
    parts = _parts(weights, _shapes(input_size, hidden_size, num_layers, bidirectional))
    half = len(parts) // 2
    rows = (parts[:half:2], parts[1:half:2], parts[half::2], parts[half + 1 :: 2])
    found = [dict(enumerate(row)) for row in rows]
    return found[0], found[1], found[2], found[3]


def swap_lstm_gates(
    weights: Any, input_size: int, hidden_size: int, num_layers: int, bidirectional: bool
) -> Any:
    """The weights with the last two gates exchanged, as other libraries order them.

    Args:
        weights: The vector.
        input_size: As in `get_num_params_in_lstm`, and so are the others.
        hidden_size: Numbers in the state.
        num_layers: Layers.
        bidirectional: Whether each layer runs in both directions.
    """
    shapes = _shapes(input_size, hidden_size, num_layers, bidirectional)
    rows = []
    for part in _parts(numpy.asarray(weights), shapes):
        a, b, c, d = numpy.split(part, 4)
        rows.append(numpy.ravel(numpy.concatenate([a, b, d, c])))
    return numpy.concatenate(rows)


def _direction(
    x: Any, state: tuple[Any, Any], parts: list[Any], within: Any, reverse: bool
) -> tuple[tuple[Any, Any], Any]:
    """A layer in one direction: its last state, and its outputs, zero behind the ends.

    Args:
        x: The sequences, ``(steps, batch, features)``.
        state: Hidden and cell state.
        parts: Weights and biases.
        within: Which elements belong to the sequences, ``(steps, batch)``.
        reverse: Whether to begin at the ends.
    """
    of_input, of_state, *biases = parts
    driven = x @ of_input.T + (biases[0] + biases[1])[None, None]

    def step(carry: tuple[Any, Any], row: tuple[Any, Any]) -> Any:
        hidden, cell = carry
        given, is_on = row[0], row[1][:, None]
        i, f, g, o = numpy.split(given + hidden @ of_state.T, 4, -1)
        new_cell = nn.sigmoid(f) * cell + nn.sigmoid(i) * numpy.tanh(g)
        new = nn.sigmoid(o) * numpy.tanh(new_cell)
        kept = numpy.where(is_on, new, hidden), numpy.where(is_on, new_cell, cell)
        return kept, numpy.where(is_on, new, 0)

    return lax.scan(step, state, (driven, within), reverse=reverse)


def lstm_ref(
    x: Any,
    h_0: Any,
    c_0: Any,
    W_ih: dict[int, Any],
    W_hh: dict[int, Any],
    b_ih: dict[int, Any],
    b_hh: dict[int, Any],
    seq_lengths: Any,
    input_size: int,
    hidden_size: int,
    num_layers: int,
    dropout: float,
    bidirectional: bool,
) -> tuple[Any, Any, Any]:
    """Outputs and last states of a network.

    Args:
        x: Sequences, ``(batch, steps, input_size)``.
        h_0: Hidden states, ``(layers and directions, batch, hidden_size)``.
        c_0: Cell states, likewise.
        W_ih: Weights of the input.
        W_hh: Weights of the state.
        b_ih: Biases.
        b_hh: Further biases.
        seq_lengths: How many elements each sequence has, int32.
        input_size: Numbers in an element.
        hidden_size: Numbers in the state.
        num_layers: Layers.
        dropout: Must be 0.
        bidirectional: Whether each layer runs in both directions.
    Returns: The outputs of the last layer, zero behind the ends, and the last states of all.

    Raises:
        DtypeError: If lengths are no int32.
        NotImplementedError: If there is dropout.
    """
    if seq_lengths.dtype != np.int32:
        raise DtypeError(f"lstm: seq_lengths must be int32, got {seq_lengths.dtype}.")
    if dropout:
        raise NotImplementedError("lstm: there is no dropout, as cuDNN's mask is not known.")
    values = numpy.transpose(x, (1, 0, 2))
    within = np.arange(values.shape[0], dtype=np.int32)[:, None] < seq_lengths[None]
    hidden, cells = [], []
    n = 2 if bidirectional else 1
    for layer in range(num_layers):
        outputs = []
        for i in range(n * layer, n * (layer + 1)):
            parts = [part[i] for part in (W_ih, W_hh, b_ih, b_hh)]
            is_back = i % n == 1
            (h, c), y = _direction(values, (h_0[i], c_0[i]), parts, within, is_back)
            hidden.append(h)
            cells.append(c)
            outputs.append(y)
        values = numpy.concatenate(outputs, -1)
    return numpy.transpose(values, (1, 0, 2)), numpy.stack(hidden), numpy.stack(cells)


def lstm(
    x: Any,
    h_0: Any,
    c_0: Any,
    weights: Any,
    seq_lengths: Any,
    input_size: int,
    hidden_size: int,
    num_layers: int,
    dropout: float,
    bidirectional: bool,
    precision: Any = None,
) -> tuple[Any, Any, Any]:
    """Outputs and last states of a network whose weights are one vector.

    Args:
        x: As in `lstm_ref`, and so are the others.
        h_0: Hidden states.
        c_0: Cell states.
        weights: The vector.
        seq_lengths: How many elements each sequence has, int32.
        input_size: Numbers in an element.
        hidden_size: Numbers in the state.
        num_layers: Layers.
        dropout: Must be 0.
        bidirectional: Whether each layer runs in both directions.
        precision: Accepted for JAX's signature.
    Returns: As there.
    """
    sizes = (input_size, hidden_size, num_layers)
    parts = unpack_lstm_weights(weights, *sizes, bidirectional)
    return lstm_ref(x, h_0, c_0, *parts, seq_lengths, *sizes, dropout, bidirectional)
