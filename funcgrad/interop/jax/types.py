"""Types of arrays with the attributes of JAX's: ``jax.core.ShapedArray``."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, NamedTuple

import numpy as np

from funcgrad.api.staging import ShapeDtypeStruct
from funcgrad.core.avals import ShapedArray, aval_of
from funcgrad.dtypes import UINT64, ExtendedDtype, float0
from funcgrad.higher_order.mesh_lanes import lane_type
from funcgrad.interop.jax import devices
from funcgrad.interop.jax.places import place_of, without_names
from funcgrad.interop.jax.widths import canonical, is_x64
from funcgrad.primitives.objects import HoldsArray
from funcgrad.random.key_arrays import KEY
from funcgrad.sharding import PartitionSpec, get_abstract_mesh


class ManualAxes(NamedTuple):
    """Axes of a mesh that `shard_map` works along, by what they mean for a value.

    Attributes:
        varying: Along these it differs.
        unreduced: Along these its lanes are terms of a sum.
        reduced: Along these the lanes of its cotangent are.
    """

    varying: frozenset[Hashable] = frozenset()
    unreduced: frozenset[Hashable] = frozenset()
    reduced: frozenset[Hashable] = frozenset()

    def invarying(self, mesh: Any) -> frozenset[Hashable]:
        """Axes of a mesh around along which the value is the same."""
        others = self.varying | self.unreduced | self.reduced
        return frozenset(getattr(mesh, "manual_axes", ())) - others


def named_dtype(name: Any) -> Any:
    """The dtype that something names: one of NumPy's or JAX's scalar types, a word, a dtype."""
    is_of_numpy = isinstance(name, type) and issubclass(name, np.generic)  # `dtype` is a slot there
    named = name if is_of_numpy else getattr(name, "dtype", name)
    return named if isinstance(named, ExtendedDtype) else np.dtype(named)


class _Kind(type):
    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, ShapedArray)


class Type(ShapedArray, metaclass=_Kind):
    """A type with where its arrays lie; every type of an array is an instance.

    Args:
        shape: Tuple of ints.
        dtype: Anything that names a dtype.
        weak_type: Whether values promote as Python scalars.
        **options: About devices; ignored.
    """

    def __init__(self, shape: Any, dtype: Any, weak_type: bool = False, **options: Any) -> None:
        super().__init__(tuple(map(int, shape)), named_dtype(dtype), weak_type)

    @property
    def sharding(self) -> devices.NamedSharding:
        """How values are divided, as far as that is known: undivided along the mesh around."""
        if isinstance(self._place, devices.NamedSharding):
            ndim = len(self.shape)
            return self._place.with_spec(without_names(self._place.spec, ndim, ()))
        around = get_abstract_mesh()
        mesh = devices.NO_MESH if around.empty else around
        return devices.NamedSharding(mesh, PartitionSpec(*[None] * len(self.shape)))

    @property
    def vma(self) -> frozenset[Hashable]:
        """Axes of a mesh along which values differ: those that `type_of` has seen."""
        return self.mat.varying

    @property
    def manual_axis_type(self) -> ManualAxes:
        """Axes of a mesh by what they mean for a value."""
        return self.mat

    mat: ManualAxes = ManualAxes()
    """Axes of a mesh by what they mean for a value."""
    _place: Any = None

    def of_lanes(self, mat: ManualAxes, place: Any) -> Type:
        """A copy for values within `shard_map`, or such as lie somewhere.

        Args:
            mat: What axes of a mesh mean for them.
            place: Where they lie; `None` if nothing is known.
        """
        made = Type(self.shape, self.dtype, self.weak_type)
        made.mat, made._place = mat, place
        return made

    def update(self, shape: Any = None, dtype: Any = None, **options: Any) -> Type:
        """A copy with another shape, dtype or weakness."""
        weak = options.get("weak_type", self.weak_type)
        return Type(
            self.shape if shape is None else shape, self.dtype if dtype is None else dtype, weak
        )

    def strip_weak_type(self) -> Type:
        """The same without weakness, in the bits that there are: weak integers have 64 here."""
        return Type(self.shape, canonical(self.dtype))

    def to_tangent_aval(self) -> Type:
        """The type of tangents: float0 where there are none."""
        has_one = getattr(self.dtype, "kind", "") in ("f", "c")
        return Type(self.shape, self.dtype if has_one else float0, self.weak_type)

    at_least_vspace = to_tangent_aval

    def str_short(self, short_dtypes: bool = False, **_: Any) -> str:
        """Text in JAX's notation."""
        return repr(self) if short_dtypes else f"{self.dtype.name}{list(self.shape)}"


def typed(aval: ShapedArray) -> Type:
    """A type, with the attributes of JAX's; without the x64 switch only keys have 64 bits."""
    if type(aval) is Type:
        return aval
    is_key = aval.dtype == UINT64 and not is_x64()
    return Type(aval.shape, KEY if is_key else aval.dtype, aval.weak_type)


def type_of(x: Any) -> Type:
    """Shape and dtype of an array or a number.

    Raises: TypeError: If it is neither.
    """
    if isinstance(x, tuple | list | dict):
        raise TypeError(
            f"{x!r:.80} is a {type(x).__name__}, which is neither an array nor a number."
        )
    if isinstance(x, HoldsArray | ShapeDtypeStruct):
        return Type(x.shape, x.dtype, getattr(x, "weak_type", False))
    names = lane_type(x)
    wide = set(get_abstract_mesh().shape.items())
    narrow = {name for name, n in wide if n == 1}
    return typed(aval_of(x)).of_lanes(ManualAxes(*(k - narrow for k in names)), place_of(x))
