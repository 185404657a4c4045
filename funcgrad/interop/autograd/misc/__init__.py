"""``autograd.misc``: flattening, optimizers, fixed points."""

from funcgrad.interop.autograd.misc import fixed_points as fixed_points
from funcgrad.interop.autograd.misc import optimizers as optimizers
from funcgrad.interop.autograd.misc import tracers as tracers
from funcgrad.interop.autograd.misc.flatten import flatten as flatten
from funcgrad.interop.autograd.misc.tracers import const_graph as const_graph
