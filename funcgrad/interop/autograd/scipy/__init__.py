"""``autograd.scipy``: SciPy's names, those of funcgrad first."""

from funcgrad.interop.autograd.scipy import integrate as integrate
from funcgrad.interop.autograd.scipy import linalg as linalg
from funcgrad.interop.autograd.scipy import misc as misc
from funcgrad.interop.autograd.scipy import signal as signal
from funcgrad.interop.autograd.scipy import special as special
from funcgrad.interop.autograd.scipy import stats as stats
