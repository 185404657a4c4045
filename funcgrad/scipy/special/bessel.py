"""Bessel, Airy, Struve and Kelvin functions of `scipy.special`, a row each.

There are derivatives in the argument, of every order; none in the order of the function.
"""

from __future__ import annotations

from funcgrad.scipy.special.rows import ufunc

# Bessel functions of order 0 and 1.
j0 = ufunc("j0", "Bessel function of the first kind of order 0.")
j1 = ufunc("j1", "Bessel function of the first kind of order 1.")
y0 = ufunc("y0", "Bessel function of the second kind of order 0.")
y1 = ufunc("y1", "Bessel function of the second kind of order 1.")
i0 = ufunc("i0", "Modified Bessel function of the first kind of order 0.")
i1 = ufunc("i1", "Modified Bessel function of the first kind of order 1.")
i0e = ufunc("i0e", "``exp(-|x|) i0(x)``.")
i1e = ufunc("i1e", "``exp(-|x|) i1(x)``.")
k0 = ufunc("k0", "Modified Bessel function of the second kind of order 0.")
k1 = ufunc("k1", "Modified Bessel function of the second kind of order 1.")
k0e = ufunc("k0e", "``exp(x) k0(x)``.")
k1e = ufunc("k1e", "``exp(x) k1(x)``.")

# Bessel functions of real order.
jv = ufunc("jv", "Bessel function of the first kind of real order ``v``.")
jn = jv
jve = ufunc("jve", "``exp(-|imag(z)|) jv(v, z)``.")
yv = ufunc("yv", "Bessel function of the second kind of real order ``v``.")
yve = ufunc("yve", "``exp(-|imag(z)|) yv(v, z)``.")
yn = ufunc("yn", "Bessel function of the second kind of integer order ``n``.")
iv = ufunc("iv", "Modified Bessel function of the first kind of real order ``v``.")
ive = ufunc("ive", "``exp(-|real(z)|) iv(v, z)``.")
kv = ufunc("kv", "Modified Bessel function of the second kind of real order ``v``.")
kve = ufunc("kve", "``exp(z) kv(v, z)``.")
kn = ufunc("kn", "Modified Bessel function of the second kind of integer order ``n``.")
hankel1 = ufunc("hankel1", "Hankel function of the first kind; the result is complex.")
hankel1e = ufunc("hankel1e", "``exp(-1j z) hankel1(v, z)``.")
hankel2 = ufunc("hankel2", "Hankel function of the second kind; the result is complex.")
hankel2e = ufunc("hankel2e", "``exp(1j z) hankel2(v, z)``.")

# Airy functions.
airy = ufunc("airy", "Airy functions Ai and Bi, each with its derivative.")
airye = ufunc("airye", "`airy`, with factors that cancel their exponential growth.")
itairy = ufunc("itairy", "Integrals of Ai and Bi from 0 to ``x`` and to ``-x``.")

# Integrals.
itj0y0 = ufunc("itj0y0", "Integrals of `j0` and `y0` from 0 to ``x``.")
iti0k0 = ufunc("iti0k0", "Integrals of `i0` and `k0` from 0 to ``x``.")
it2j0y0 = ufunc("it2j0y0", "Integrals of ``(1 - j0(t)) / t`` from 0, and of ``y0(t) / t`` from x.")
it2i0k0 = ufunc("it2i0k0", "Integrals of ``(i0(t) - 1) / t`` from 0, and of ``k0(t) / t`` from x.")
besselpoly = ufunc("besselpoly", "Integral of ``t**lmb jv(nu, 2 a t)`` from 0 to 1.")

# Struve functions.
struve = ufunc("struve", "Struve function of real order.")
modstruve = ufunc("modstruve", "Modified Struve function of real order.")
itstruve0 = ufunc("itstruve0", "Integral of the Struve function of order 0 from 0 to ``x``.")
it2struve0 = ufunc("it2struve0", "Integral of ``struve(0, t) / t`` from ``x`` on.")
itmodstruve0 = ufunc("itmodstruve0", "Integral of ``modstruve(0, t)`` from 0 to ``x``.")

# Kelvin functions.
ber = ufunc("ber", "Kelvin function ber.")
bei = ufunc("bei", "Kelvin function bei.")
ker = ufunc("ker", "Kelvin function ker.")
kei = ufunc("kei", "Kelvin function kei.")
berp = ufunc("berp", "Derivative of `ber`.")
beip = ufunc("beip", "Derivative of `bei`.")
kerp = ufunc("kerp", "Derivative of `ker`.")
keip = ufunc("keip", "Derivative of `kei`.")
