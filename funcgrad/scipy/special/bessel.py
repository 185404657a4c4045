"""Bessel, Airy, Struve and Kelvin functions of `scipy.special`, a row each.

There are derivatives in the argument, of every order; none in the order of the function.
"""

from funcgrad.scipy.special.rows import ufunc

# Bessel functions of order 0 and 1.
j0 = ufunc("j0", "Bessel function of the first kind of order 0.", "0.5 -> 0.938469807240813")
j1 = ufunc("j1", "Bessel function of the first kind of order 1.", "0.5 -> 0.24226845767487387")
y0 = ufunc("y0", "Bessel function of the second kind of order 0.", "0.5 -> -0.4445187335067066")
y1 = ufunc("y1", "Bessel function of the second kind of order 1.", "0.5 -> -1.4714723926702433")
i0 = ufunc(
    "i0", "Modified Bessel function of the first kind of order 0.", "0.5 -> 1.0634833707413234"
)
i1 = ufunc(
    "i1", "Modified Bessel function of the first kind of order 1.", "0.5 -> 0.25789430539089636"
)
i0e = ufunc("i0e", "``exp(-|x|) i0(x)``.", "0.5 -> 0.64503527044915")
i1e = ufunc("i1e", "``exp(-|x|) i1(x)``.", "0.5 -> 0.15642080318487173")
k0 = ufunc(
    "k0", "Modified Bessel function of the second kind of order 0.", "0.5 -> 0.9244190712276656"
)
k1 = ufunc(
    "k1", "Modified Bessel function of the second kind of order 1.", "0.5 -> 1.6564411200033007"
)
k0e = ufunc("k0e", "``exp(x) k0(x)``.", "0.5 -> 1.5241093857739092")
k1e = ufunc("k1e", "``exp(x) k1(x)``.", "0.5 -> 2.7310097082117855")

# Bessel functions of real order.
jv = ufunc(
    "jv",
    "Bessel function of the first kind of real order ``v``.",
    "1.5, 0.5 -> 0.09170169962565139",
)
jn = jv
jve = ufunc("jve", "``exp(-|imag(z)|) jv(v, z)``.", "1.5, 0.5 -> 0.09170169962565139")
yv = ufunc(
    "yv",
    "Bessel function of the second kind of real order ``v``.",
    "1.5, 0.5 -> -2.5214655504213384",
)
yve = ufunc("yve", "``exp(-|imag(z)|) yv(v, z)``.", "1.5, 0.5 -> -2.5214655504213384")
yn = ufunc(
    "yn",
    "Bessel function of the second kind of integer order ``n``.",
    "2, 0.5 -> -5.441370837174267",
)
iv = ufunc(
    "iv",
    "Modified Bessel function of the first kind of real order ``v``.",
    "1.5, 0.5 -> 0.09640347383401678",
)
ive = ufunc("ive", "``exp(-|real(z)|) iv(v, z)``.", "1.5, 0.5 -> 0.058471662583135825")
kv = ufunc(
    "kv",
    "Modified Bessel function of the second kind of real order ``v``.",
    "1.5, 0.5 -> 3.225142810499761",
)
kve = ufunc("kve", "``exp(z) kv(v, z)``.", "1.5, 0.5 -> 5.317361552716548")
kn = ufunc(
    "kn",
    "Modified Bessel function of the second kind of integer order ``n``.",
    "2, 0.5 -> 7.550183551240869",
)
hankel1 = ufunc(
    "hankel1",
    "Hankel function of the first kind; the result is complex.",
    "1.5, 0.5 -> 0.09170169962565144-2.5214655504213384j",
)
hankel1e = ufunc(
    "hankel1e",
    "``exp(-1j z) hankel1(v, z)``.",
    "1.5, 0.5 -> -1.1283791670955126-2.2567583341910256j",
)
hankel2 = ufunc(
    "hankel2",
    "Hankel function of the second kind; the result is complex.",
    "1.5, 0.5 -> 0.09170169962565144+2.5214655504213384j",
)
hankel2e = ufunc(
    "hankel2e",
    "``exp(1j z) hankel2(v, z)``.",
    "1.5, 0.5 -> -1.1283791670955126+2.2567583341910256j",
)

# Airy functions.
airy = ufunc(
    "airy",
    "Airy functions Ai and Bi, each with its derivative.",
    ("0.5 -> (0.23169360648083343, -0.224910532664684,\n0.8542770431031554, 0.5445725641405924)"),
)
airye = ufunc(
    "airye",
    "`airy`, with factors that cancel their exponential growth.",
    ("0.5 -> (0.2932771591299473, -0.28469116209194273,\n0.6748924111156304, 0.4302209614637695)"),
)
itairy = ufunc(
    "itairy",
    "Integrals of Ai and Bi from 0 to ``x`` and to ``-x``.",
    ("0.5 -> (0.14595330516334704, 0.36533846506717255,\n0.20880954780848898, 0.2500627549959552)"),
)

# Integrals.
itj0y0 = ufunc(
    "itj0y0",
    "Integrals of `j0` and `y0` from 0 to ``x``.",
    "0.5 -> (0.4896805066460451, -0.5617954559146403)",
)
iti0k0 = ufunc(
    "iti0k0",
    "Integrals of `i0` and `k0` from 0 to ``x``.",
    "0.5 -> (0.5105148087974031, 0.9271025209311491)",
)
it2j0y0 = ufunc(
    "it2j0y0",
    "Integrals of ``(1 - j0(t)) / t`` from 0, and of ``y0(t) / t`` from x.",
    "0.5 -> (0.031006986350915297, 0.26968853860900577)",
)
it2i0k0 = ufunc(
    "it2i0k0",
    "Integrals of ``(i0(t) - 1) / t`` from 0, and of ``k0(t) / t`` from x.",
    "0.5 -> (0.031495274223672765, 0.6657510156598185)",
)
besselpoly = ufunc(
    "besselpoly",
    "Integral of ``t**lmb jv(nu, 2 a t)`` from 0 to 1.",
    "1.3, 1.3, 0.3 -> 0.1996383732856326",
)

# Struve functions.
struve = ufunc("struve", "Struve function of real order.", "1.5, 0.5 -> 0.017387575543565445")
modstruve = ufunc(
    "modstruve", "Modified Struve function of real order.", "1.5, 0.5 -> 0.017877334377864554"
)
itstruve0 = ufunc(
    "itstruve0",
    "Integral of the Struve function of order 0 from 0 to ``x``.",
    "0.5 -> 0.07847956904452136",
)
it2struve0 = ufunc(
    "it2struve0", "Integral of ``struve(0, t) / t`` from ``x`` on.", "0.5 -> 1.255416134780694"
)
itmodstruve0 = ufunc(
    "itmodstruve0", "Integral of ``modstruve(0, t)`` from 0 to ``x``.", "0.5 -> 0.0806901107554135"
)

# Kelvin functions.
ber = ufunc("ber", "Kelvin function ber.", "0.5 -> 0.9990234639908382")
bei = ufunc("bei", "Kelvin function bei.", "0.5 -> 0.06249321838219946")
ker = ufunc("ker", "Kelvin function ker.", "0.5 -> 0.8559058721186341")
kei = ufunc("kei", "Kelvin function kei.", "0.5 -> -0.6715816950943675")
berp = ufunc("berp", "Derivative of `ber`.", "0.5 -> -0.007812076147507734")
beip = ufunc("beip", "Derivative of `bei`.", "0.5 -> 0.24991862111621022")
kerp = ufunc("kerp", "Derivative of `ker`.", "0.5 -> -1.8197997533173529")
keip = ufunc("keip", "Derivative of `kei`.", "0.5 -> 0.33320379160332986")
