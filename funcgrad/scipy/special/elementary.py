"""Error functions, gamma functions, logarithms, powers, integrals: ufuncs of `scipy.special`.

A row for every function; the primitives, with the derivatives, are in
`funcgrad.primitives.special` and its neighbours.
"""

from __future__ import annotations

from funcgrad.scipy.special.rows import ufunc

# Error functions and the normal distribution.
erf = ufunc("erf", "Error function.")
erfc = ufunc("erfc", "``1 - erf(x)``, accurate for large ``x``.")
erfcx = ufunc("erfcx", "``exp(x**2) erfc(x)``.")
erfinv = ufunc("erfinv", "Inverse of `erf`.")
erfcinv = ufunc("erfcinv", "Inverse of `erfc`.")
erfi = ufunc("erfi", "Imaginary error function ``-1j erf(1j z)``.")
wofz = ufunc("wofz", "Faddeeva's function ``exp(-z**2) erfc(-1j z)``; the result is complex.")
voigt_profile = ufunc("voigt_profile", "Density of a normal plus a Cauchy distributed variable.")
dawsn = ufunc("dawsn", "Dawson's integral.")
ndtr = ufunc("ndtr", "Cumulative distribution function of the standard normal distribution.")
ndtri = ufunc("ndtri", "Inverse of `ndtr`.", "p")

# Gamma and beta functions.
gamma = ufunc("gamma", "Gamma function.")
gammaln = ufunc("gammaln", "Logarithm of the absolute value of the gamma function.")
rgamma = ufunc("rgamma", "``1 / gamma(x)``, which has no poles.")
digamma = psi = ufunc("psi", "Derivative of `gammaln`.")
beta = ufunc("beta", "Beta function.", "a b")
betaln = ufunc("betaln", "Logarithm of the absolute value of the beta function.", "a b")
binom = ufunc("binom", "Binomial coefficient of real arguments.", "n k")
gammainc = ufunc("gammainc", "Regularised lower incomplete gamma function.", "a x")
gammaincc = ufunc("gammaincc", "Regularised upper incomplete gamma function.", "a x")
gammaincinv = ufunc("gammaincinv", "Inverse of `gammainc` in ``x``.", "a y")
gammainccinv = ufunc("gammainccinv", "Inverse of `gammaincc` in ``x``.", "a y")
betainc = ufunc("betainc", "Regularised incomplete beta function.", "a b x")

loggamma = ufunc("loggamma", "Principal branch of the logarithm of the gamma function.")
gammasgn = ufunc("gammasgn", "Sign of the gamma function.")
poch = ufunc("poch", "Pochhammer's symbol ``gamma(z + m) / gamma(z)``.")
zetac = ufunc("zetac", "``zeta(x) - 1`` of Riemann's zeta function.")

# Logarithms, entropies, the logistic function.
xlogy = ufunc("xlogy", "``x log(y)``, 0 where ``x`` is 0.", "x y")
xlog1py = ufunc("xlog1py", "``x log(1 + y)``, 0 where ``x`` is 0.", "x y")
entr = ufunc("entr", "``-x log(x)``: the terms of an entropy.")
rel_entr = ufunc("rel_entr", "``p log(p / q)``: the terms of a relative entropy.", "p q")
kl_div = ufunc("kl_div", "``p log(p / q) - p + q``, which is never negative.", "p q")
expit = ufunc("expit", "Logistic function ``1 / (1 + exp(-x))``.")
logit = ufunc("logit", "Inverse of `expit`: ``log(x / (1 - x))``.")
log_expit = ufunc("log_expit", "Logarithm of `expit`, accurate for very negative ``x``.")
exprel = ufunc("exprel", "``(exp(x) - 1) / x``, 1 at 0.")
expm1 = ufunc("expm1", "``exp(x) - 1``, accurate near 0.")
log1p = ufunc("log1p", "``log(1 + x)``, accurate near 0.")
exp2 = ufunc("exp2", "``2 ** x``.")
exp10 = ufunc("exp10", "``10 ** x``.")
cbrt = ufunc("cbrt", "Real cube root.")
cosm1 = ufunc("cosm1", "``cos(x) - 1``, accurate near 0.")

powm1 = ufunc("powm1", "``x ** y - 1``, accurate near 0.")
boxcox = ufunc("boxcox", "Box and Cox's power ``(x**lmbda - 1) / lmbda``, ``log(x)`` for 0.")
boxcox1p = ufunc("boxcox1p", "`boxcox` of ``1 + x``, accurate near 0.")
inv_boxcox = ufunc("inv_boxcox", "Inverse of `boxcox` in ``x``.")
inv_boxcox1p = ufunc("inv_boxcox1p", "Inverse of `boxcox1p` in ``x``.")
huber = ufunc("huber", "Huber's loss: quadratic up to ``delta``, then linear.")
pseudo_huber = ufunc("pseudo_huber", "``delta**2 (sqrt(1 + (r / delta)**2) - 1)``.")

# Angles in degrees.
sindg = ufunc("sindg", "Sine of an angle in degrees.")
cosdg = ufunc("cosdg", "Cosine of an angle in degrees.")
tandg = ufunc("tandg", "Tangent of an angle in degrees.")
cotdg = ufunc("cotdg", "Cotangent of an angle in degrees.")
radian = ufunc("radian", "Degrees, minutes and seconds in radians.")
round = ufunc("round", "The nearest integer, the even one of two.")

# Integrals.
expi = ufunc("expi", "Exponential integral Ei.")
exp1 = ufunc("exp1", "Exponential integral E1.")
spence = ufunc("spence", "Spence's function, the dilogarithm of ``1 - x``.")
expn = ufunc("expn", "Exponential integral En of integer order ``n``.")
sici = ufunc("sici", "Sine and cosine integrals.")
shichi = ufunc("shichi", "Hyperbolic sine and cosine integrals.")
fresnel = ufunc("fresnel", "Fresnel's integrals of ``sin(pi t**2 / 2)`` and ``cos(pi t**2 / 2)``.")

# Wright's functions.
wrightomega = ufunc("wrightomega", "Solution of ``w + log(w) = z``.")
wright_bessel = ufunc("wright_bessel", "Wright's generalised Bessel function.")
log_wright_bessel = ufunc("log_wright_bessel", "Logarithm of `wright_bessel`.")
