"""What only makes constants: SciPy's own functions, so that a program needs one import.

Nodes and weights of quadratures, zeros, polynomials as objects, sequences of numbers, and how
SciPy treats its errors. They refuse traced values.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from funcgrad.scipy.passing import passed_on


def _own(name: str) -> Callable[..., Any]:
    return passed_on("scipy.special", name)


# Nodes and weights of quadratures.
c_roots = _own("c_roots")
cg_roots = _own("cg_roots")
h_roots = _own("h_roots")
he_roots = _own("he_roots")
j_roots = _own("j_roots")
js_roots = _own("js_roots")
l_roots = _own("l_roots")
la_roots = _own("la_roots")
p_roots = _own("p_roots")
ps_roots = _own("ps_roots")
s_roots = _own("s_roots")
t_roots = _own("t_roots")
ts_roots = _own("ts_roots")
u_roots = _own("u_roots")
us_roots = _own("us_roots")
roots_chebyc = _own("roots_chebyc")
roots_chebys = _own("roots_chebys")
roots_chebyt = _own("roots_chebyt")
roots_chebyu = _own("roots_chebyu")
roots_gegenbauer = _own("roots_gegenbauer")
roots_genlaguerre = _own("roots_genlaguerre")
roots_hermite = _own("roots_hermite")
roots_hermitenorm = _own("roots_hermitenorm")
roots_jacobi = _own("roots_jacobi")
roots_laguerre = _own("roots_laguerre")
roots_legendre = _own("roots_legendre")
roots_sh_chebyt = _own("roots_sh_chebyt")
roots_sh_chebyu = _own("roots_sh_chebyu")
roots_sh_jacobi = _own("roots_sh_jacobi")
roots_sh_legendre = _own("roots_sh_legendre")

# Polynomials as objects.
chebyc = _own("chebyc")
chebys = _own("chebys")
chebyt = _own("chebyt")
chebyu = _own("chebyu")
gegenbauer = _own("gegenbauer")
genlaguerre = _own("genlaguerre")
hermite = _own("hermite")
hermitenorm = _own("hermitenorm")
jacobi = _own("jacobi")
laguerre = _own("laguerre")
legendre = _own("legendre")
sh_chebyt = _own("sh_chebyt")
sh_chebyu = _own("sh_chebyu")
sh_jacobi = _own("sh_jacobi")
sh_legendre = _own("sh_legendre")

# Zeros of functions.
ai_zeros = _own("ai_zeros")
bei_zeros = _own("bei_zeros")
beip_zeros = _own("beip_zeros")
ber_zeros = _own("ber_zeros")
berp_zeros = _own("berp_zeros")
bi_zeros = _own("bi_zeros")
erf_zeros = _own("erf_zeros")
fresnel_zeros = _own("fresnel_zeros")
fresnelc_zeros = _own("fresnelc_zeros")
fresnels_zeros = _own("fresnels_zeros")
jn_zeros = _own("jn_zeros")
jnjnp_zeros = _own("jnjnp_zeros")
jnp_zeros = _own("jnp_zeros")
jnyn_zeros = _own("jnyn_zeros")
kei_zeros = _own("kei_zeros")
keip_zeros = _own("keip_zeros")
kelvin_zeros = _own("kelvin_zeros")
ker_zeros = _own("ker_zeros")
kerp_zeros = _own("kerp_zeros")
y0_zeros = _own("y0_zeros")
y1_zeros = _own("y1_zeros")
y1p_zeros = _own("y1p_zeros")
yn_zeros = _own("yn_zeros")
ynp_zeros = _own("ynp_zeros")

# Sequences and tables of one number.
bernoulli = _own("bernoulli")
euler = _own("euler")
ellip_harm = _own("ellip_harm")
ellip_harm_2 = _own("ellip_harm_2")
ellip_normal = _own("ellip_normal")
lmbda = _own("lmbda")
lqmn = _own("lqmn")
lqn = _own("lqn")
mathieu_even_coef = _own("mathieu_even_coef")
mathieu_odd_coef = _own("mathieu_odd_coef")
obl_cv_seq = _own("obl_cv_seq")
pbdn_seq = _own("pbdn_seq")
pbdv_seq = _own("pbdv_seq")
pbvv_seq = _own("pbvv_seq")
pro_cv_seq = _own("pro_cv_seq")
riccati_jn = _own("riccati_jn")
riccati_yn = _own("riccati_yn")

# How SciPy treats its errors.
errstate = _own("errstate")
geterr = _own("geterr")
seterr = _own("seterr")
