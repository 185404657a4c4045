"""The methods of `solve_ivp` by their names."""

from __future__ import annotations

from scipy.integrate import DOP853, RK23, RK45

from funcgrad.scipy.integrate.differences import Differences
from funcgrad.scipy.integrate.explicit import Embedded, HighOrder
from funcgrad.scipy.integrate.radau import Radau
from funcgrad.scipy.integrate.stepping import Method

METHODS: dict[str, Method] = {
    "RK23": Embedded(RK23),
    "RK45": Embedded(RK45),
    "DOP853": HighOrder(DOP853),
    "Radau": Radau(),
    "BDF": Differences(),
}
