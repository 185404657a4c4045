"""Error functions, gamma functions, logarithms, powers, integrals: ufuncs of `scipy.special`.

A row for every function; the primitives, with the derivatives, are in
`funcgrad.primitives.special` and its neighbours.
"""

from funcgrad.scipy.special.rows import ufunc

# Error functions and the normal distribution.
erf = ufunc("erf", "Error function.", "0.5 -> 0.5204998778130465")
erfc = ufunc("erfc", "``1 - erf(x)``, accurate for large ``x``.", "0.5 -> 0.4795001221869535")
erfcx = ufunc("erfcx", "``exp(x**2) erfc(x)``.", "0.5 -> 0.6156903441929258")
erfinv = ufunc("erfinv", "Inverse of `erf`.", "0.5 -> 0.4769362762044699")
erfcinv = ufunc("erfcinv", "Inverse of `erfc`.", "0.5 -> 0.4769362762044699")
erfi = ufunc("erfi", "Imaginary error function ``-1j erf(1j z)``.", "0.5 -> 0.6149520946965109")
wofz = ufunc(
    "wofz",
    "Faddeeva's function ``exp(-z**2) erfc(-1j z)``; the result is complex.",
    "0.5 -> 0.7788007830714049+0.4789251729010434j",
)
voigt_profile = ufunc(
    "voigt_profile",
    "Density of a normal plus a Cauchy distributed variable.",
    "0.5, 1.0, 1.0 -> 0.19676985987547646",
)
dawsn = ufunc("dawsn", "Dawson's integral.", "0.5 -> 0.4244363835020223")
ndtr = ufunc(
    "ndtr",
    "Cumulative distribution function of the standard normal distribution.",
    "0.5 -> 0.6914624612740131",
)
ndtri = ufunc("ndtri", "Inverse of `ndtr`.", "0.7 -> 0.5244005127080407", "p")

# Gamma and beta functions.
gamma = ufunc("gamma", "Gamma function.", "0.5 -> 1.7724538509055159")
gammaln = ufunc(
    "gammaln", "Logarithm of the absolute value of the gamma function.", "0.5 -> 0.5723649429247"
)
rgamma = ufunc("rgamma", "``1 / gamma(x)``, which has no poles.", "0.5 -> 0.5641895835477563")
digamma = psi = ufunc("psi", "Derivative of `gammaln`.", "0.5 -> -1.9635100260214235")
beta = ufunc("beta", "Beta function.", "1.0, 2.0 -> 0.5", "a b")
betaln = ufunc(
    "betaln",
    "Logarithm of the absolute value of the beta function.",
    "1.0, 2.0 -> -0.6931471805599453",
    "a b",
)
binom = ufunc("binom", "Binomial coefficient of real arguments.", "5, 2 -> 10.0", "n k")
gammainc = ufunc(
    "gammainc",
    "Regularised lower incomplete gamma function.",
    "2.0, 1.0 -> 0.2642411176571153",
    "a x",
)
gammaincc = ufunc(
    "gammaincc",
    "Regularised upper incomplete gamma function.",
    "2.0, 1.0 -> 0.7357588823428847",
    "a x",
)
gammaincinv = ufunc(
    "gammaincinv", "Inverse of `gammainc` in ``x``.", "2.0, 0.3 -> 1.0973492107034917", "a y"
)
gammainccinv = ufunc(
    "gammainccinv", "Inverse of `gammaincc` in ``x``.", "2.0, 0.3 -> 2.439216483280204", "a y"
)
betainc = ufunc(
    "betainc", "Regularised incomplete beta function.", "2.0, 3.0, 0.5 -> 0.6875", "a b x"
)

loggamma = ufunc(
    "loggamma", "Principal branch of the logarithm of the gamma function.", "0.5 -> 0.5723649429247"
)
gammasgn = ufunc("gammasgn", "Sign of the gamma function.", "0.5 -> 1.0")
poch = ufunc(
    "poch", "Pochhammer's symbol ``gamma(z + m) / gamma(z)``.", "1.5, 0.5 -> 1.1283791670955126"
)
zetac = ufunc("zetac", "``zeta(x) - 1`` of Riemann's zeta function.", "0.5 -> -2.4603545088095866")

# Logarithms, entropies, the logistic function.
xlogy = ufunc(
    "xlogy", "``x log(y)``, 0 where ``x`` is 0.", "2.0, 0.5 -> -1.3862943611198906", "x y"
)
xlog1py = ufunc(
    "xlog1py", "``x log(1 + y)``, 0 where ``x`` is 0.", "2.0, 0.5 -> 0.8109302162163288", "x y"
)
entr = ufunc("entr", "``-x log(x)``: the terms of an entropy.", "0.5 -> 0.34657359027997264")
rel_entr = ufunc(
    "rel_entr",
    "``p log(p / q)``: the terms of a relative entropy.",
    "2.0, 0.5 -> 2.772588722239781",
    "p q",
)
kl_div = ufunc(
    "kl_div",
    "``p log(p / q) - p + q``, which is never negative.",
    "2.0, 0.5 -> 1.2725887222397811",
    "p q",
)
expit = ufunc("expit", "Logistic function ``1 / (1 + exp(-x))``.", "0.5 -> 0.6224593312018546")
logit = ufunc("logit", "Inverse of `expit`: ``log(x / (1 - x))``.", "0.7 -> 0.8472978603872034")
log_expit = ufunc(
    "log_expit",
    "Logarithm of `expit`, accurate for very negative ``x``.",
    "0.5 -> -0.4740769841801067",
)
exprel = ufunc("exprel", "``(exp(x) - 1) / x``, 1 at 0.", "0.5 -> 1.2974425414002564")
expm1 = ufunc("expm1", "``exp(x) - 1``, accurate near 0.", "0.5 -> 0.6487212707001282")
log1p = ufunc("log1p", "``log(1 + x)``, accurate near 0.", "0.5 -> 0.4054651081081644")
exp2 = ufunc("exp2", "``2 ** x``.", "0.5 -> 1.4142135623730951")
exp10 = ufunc("exp10", "``10 ** x``.", "0.5 -> 3.162277660168379")
cbrt = ufunc("cbrt", "Real cube root.", "0.5 -> 0.7937005259840998")
cosm1 = ufunc("cosm1", "``cos(x) - 1``, accurate near 0.", "0.5 -> -0.12241743810962728")

powm1 = ufunc("powm1", "``x ** y - 1``, accurate near 0.", "2.0, 0.5 -> 0.41421356237309515")
boxcox = ufunc(
    "boxcox",
    "Box and Cox's power ``(x**lmbda - 1) / lmbda``, ``log(x)`` for 0.",
    "2.0, 0.5 -> 0.8284271247461901",
)
boxcox1p = ufunc(
    "boxcox1p", "`boxcox` of ``1 + x``, accurate near 0.", "2.0, 0.5 -> 1.4641016151377544"
)
inv_boxcox = ufunc("inv_boxcox", "Inverse of `boxcox` in ``x``.", "2.0, 0.5 -> 4.0")
inv_boxcox1p = ufunc("inv_boxcox1p", "Inverse of `boxcox1p` in ``x``.", "2.0, 0.5 -> 3.0")
huber = ufunc("huber", "Huber's loss: quadratic up to ``delta``, then linear.", "2.0, 0.5 -> 0.125")
pseudo_huber = ufunc(
    "pseudo_huber",
    "``delta**2 (sqrt(1 + (r / delta)**2) - 1)``.",
    "2.0, 0.5 -> 0.12310562561766054",
)

# Angles in degrees.
sindg = ufunc("sindg", "Sine of an angle in degrees.", "60.0 -> 0.8660254037844387")
cosdg = ufunc("cosdg", "Cosine of an angle in degrees.", "60.0 -> 0.49999999999999994")
tandg = ufunc("tandg", "Tangent of an angle in degrees.", "60.0 -> 1.7320508075688767")
cotdg = ufunc("cotdg", "Cotangent of an angle in degrees.", "60.0 -> 0.5773502691896257")
radian = ufunc(
    "radian", "Degrees, minutes and seconds in radians.", "1.0, 2.0, 3.0 -> 0.018049613347708025"
)
round = ufunc("round", "The nearest integer, the even one of two.", "2.6 -> 3.0")

# Integrals.
expi = ufunc("expi", "Exponential integral Ei.", "0.5 -> 0.45421990486317354")
exp1 = ufunc("exp1", "Exponential integral E1.", "0.5 -> 0.5597735947761608")
spence = ufunc(
    "spence", "Spence's function, the dilogarithm of ``1 - x``.", "0.5 -> 0.5822405264650135"
)
expn = ufunc(
    "expn", "Exponential integral En of integer order ``n``.", "2, 0.5 -> 0.3266438623245532"
)
sici = ufunc(
    "sici", "Sine and cosine integrals.", "0.5 -> (0.49310741804306674, -0.17778407880661287)"
)
shichi = ufunc(
    "shichi",
    "Hyperbolic sine and cosine integrals.",
    "0.5 -> (0.5069967498196671, -0.05277684495649357)",
)
fresnel = ufunc(
    "fresnel",
    "Fresnel's integrals of ``sin(pi t**2 / 2)`` and ``cos(pi t**2 / 2)``.",
    "0.5 -> (0.06473243285999929, 0.4923442258714464)",
)

# Wright's functions.
wrightomega = ufunc("wrightomega", "Solution of ``w + log(w) = z``.", "0.5 -> 0.7662486081617502")
wright_bessel = ufunc(
    "wright_bessel", "Wright's generalised Bessel function.", "1.3, 1.3, 1.3 -> 2.1946886163092594"
)
log_wright_bessel = ufunc(
    "log_wright_bessel", "Logarithm of `wright_bessel`.", "1.3, 1.3, 1.3 -> 0.7860401760126267"
)
