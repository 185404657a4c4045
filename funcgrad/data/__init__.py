"""Data on the way to and from the functions: batches, files of arrays, text, saved parameters.

This module is a page of names; the work is in the modules that it names.
"""

from funcgrad.base.namespaces import present
from funcgrad.data.batching import batches, prefetch, train_test_split
from funcgrad.data.idx import mnist, read_idx
from funcgrad.data.saving import load, save
from funcgrad.data.sources import Source, folder, from_ray
from funcgrad.data.streaming import stream
from funcgrad.data.text import CharTokenizer

__all__ = [
    "CharTokenizer", "Source", "batches", "folder", "from_ray", "load", "mnist", "prefetch",
    "read_idx", "save", "stream", "train_test_split",
]  # fmt: skip

present(__name__)
