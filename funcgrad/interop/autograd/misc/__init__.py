"""``autograd.misc``: flattening, optimizers, fixed points."""

from funcgrad.interop.autograd.misc import fixed_points, optimizers, tracers
from funcgrad.interop.autograd.misc.flatten import flatten
from funcgrad.interop.autograd.misc.tracers import const_graph
