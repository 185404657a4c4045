"""Layers of networks, each a pair of functions ``(init, apply)``.

``params, state = layer.init(key, *inputs)`` makes initial parameters for inputs of these types,
and ``outputs, state = layer.apply(params, state, *inputs, key=key, train=True)`` computes.
Parameters are nested dicts and tuples of arrays, float32 unless another dtype is asked for.
Features are the last axis of every array, and images are (batch, height, width, channels).

This module is a page of names; the work is in the modules that it names.
"""

from funcgrad.nn.layers.attending import attention
from funcgrad.nn.layers.base import Layer
from funcgrad.nn.layers.combinators import checkpoint, parallel, repeat, residual, sequential
from funcgrad.nn.layers.features import conv, conv_transpose, dense, embedding
from funcgrad.nn.layers.norms import batch_norm, group_norm, layer_norm, rms_norm
from funcgrad.nn.layers.plain import activation, avg_pool, dropout, flatten, max_pool, min_pool
from funcgrad.nn.layers.recurrent import gru_cell, lstm_cell, recurrent, rnn_cell

__all__ = [
    "Layer", "activation", "attention", "avg_pool", "batch_norm", "checkpoint", "conv",
    "conv_transpose", "dense", "dropout", "embedding", "flatten", "group_norm", "gru_cell",
    "layer_norm", "lstm_cell", "max_pool", "min_pool", "parallel", "recurrent", "repeat",
    "residual", "rms_norm", "rnn_cell", "sequential",
]  # fmt: skip
