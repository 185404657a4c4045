"""Makers of constants: SciPy's own functions, so that a program needs one import.

Nodes and weights of quadratures, zeros, polynomials as objects, sequences of numbers, and how
SciPy treats its errors. They refuse traced values.
"""

from __future__ import annotations

from funcgrad.numpy.host_functions import host_functions

_FUNCTIONS = host_functions(
    "scipy.special",
    """
    ai_zeros bei_zeros beip_zeros ber_zeros bernoulli berp_zeros bi_zeros c_roots cg_roots chebyc
    chebys chebyt chebyu ellip_harm ellip_harm_2 ellip_normal erf_zeros errstate euler fresnel_zeros
    fresnelc_zeros fresnels_zeros gegenbauer genlaguerre geterr h_roots he_roots hermite hermitenorm
    j_roots jacobi jn_zeros jnjnp_zeros jnp_zeros jnyn_zeros js_roots kei_zeros keip_zeros
    kelvin_zeros ker_zeros kerp_zeros l_roots la_roots laguerre legendre lmbda lqmn lqn
    mathieu_even_coef mathieu_odd_coef obl_cv_seq p_roots pbdn_seq pbdv_seq pbvv_seq pro_cv_seq
    ps_roots riccati_jn riccati_yn roots_chebyc roots_chebys roots_chebyt roots_chebyu
    roots_gegenbauer roots_genlaguerre roots_hermite roots_hermitenorm roots_jacobi roots_laguerre
    roots_legendre roots_sh_chebyt roots_sh_chebyu roots_sh_jacobi roots_sh_legendre s_roots seterr
    sh_chebyt sh_chebyu sh_jacobi sh_legendre t_roots ts_roots u_roots us_roots y0_zeros y1_zeros
    y1p_zeros yn_zeros ynp_zeros
    """,
)
vars().update(_FUNCTIONS)
__all__ = list(_FUNCTIONS)
