"""The ufuncs of `scipy.special`, a row each: error functions to Mathieu's, and distributions.

There are derivatives of every order in the argument, but none in orders of Bessel functions, in
degrees and parameters of polynomials and wave functions, and of hypergeometric functions only in
the last argument and the parameters of ``hyp1f1``. A degree that is an integer is evaluated by
recurrence, another one by hypergeometric functions. Derivatives in degrees of freedom and shapes
exist for the central distributions, once; counts have none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from funcgrad.scipy.special.rows import ufuncs

if TYPE_CHECKING:  # the names that are added below

    def __getattr__(name: str) -> Any: ...


UFUNCS = ufuncs("""
# Error functions and the normal distribution.
erf | Error function. | 0.5 -> 0.5204998778130465
erfc | ``1 - erf(x)``, accurate for large ``x``. | 0.5 -> 0.4795001221869535
erfcx | ``exp(x**2) erfc(x)``. | 0.5 -> 0.6156903441929258
erfinv | Inverse of `erf`. | 0.5 -> 0.4769362762044699
erfcinv | Inverse of `erfc`. | 0.5 -> 0.4769362762044699
erfi | Imaginary error function ``-1j erf(1j z)``. | 0.5 -> 0.6149520946965109
wofz | Faddeeva's function ``exp(-z**2) erfc(-1j z)``; the result is complex.
    | 0.5 -> 0.7788007830714049+0.4789251729010434j
voigt_profile | Density of a normal plus a Cauchy distributed variable.
    | 0.5, 1.0, 1.0 -> 0.19676985987547646
dawsn | Dawson's integral. | 0.5 -> 0.4244363835020223
ndtr | Cumulative distribution function of the standard normal distribution.
    | 0.5 -> 0.6914624612740131
ndtri p | Inverse of `ndtr`. | 0.7 -> 0.5244005127080407
# Gamma and beta functions.
gamma | Gamma function. | 0.5 -> 1.7724538509055159
gammaln | Logarithm of the absolute value of the gamma function. | 0.5 -> 0.5723649429247
rgamma | ``1 / gamma(x)``, which has no poles. | 0.5 -> 0.5641895835477563
psi | Derivative of `gammaln`. | 0.5 -> -1.9635100260214235
beta a b | Beta function. | 1.0, 2.0 -> 0.5
betaln a b | Logarithm of the absolute value of the beta function. | 1.0, 2.0 -> -0.6931471805599453
binom n k | Binomial coefficient of real arguments. | 5, 2 -> 10.0
gammainc a x | Regularised lower incomplete gamma function. | 2.0, 1.0 -> 0.2642411176571153
gammaincc a x | Regularised upper incomplete gamma function. | 2.0, 1.0 -> 0.7357588823428847
gammaincinv a y | Inverse of `gammainc` in ``x``. | 2.0, 0.3 -> 1.0973492107034917
gammainccinv a y | Inverse of `gammaincc` in ``x``. | 2.0, 0.3 -> 2.439216483280204
betainc a b x | Regularised incomplete beta function. | 2.0, 3.0, 0.5 -> 0.6875
loggamma | Principal branch of the logarithm of the gamma function. | 0.5 -> 0.5723649429247
gammasgn | Sign of the gamma function. | 0.5 -> 1.0
poch | Pochhammer's symbol ``gamma(z + m) / gamma(z)``. | 1.5, 0.5 -> 1.1283791670955126
zetac | ``zeta(x) - 1`` of Riemann's zeta function. | 0.5 -> -2.4603545088095866
# Logarithms, entropies, the logistic function.
xlogy x y | ``x log(y)``, 0 where ``x`` is 0. | 2.0, 0.5 -> -1.3862943611198906
xlog1py x y | ``x log(1 + y)``, 0 where ``x`` is 0. | 2.0, 0.5 -> 0.8109302162163288
entr | ``-x log(x)``: the terms of an entropy. | 0.5 -> 0.34657359027997264
rel_entr p q | ``p log(p / q)``: the terms of a relative entropy. | 2.0, 0.5 -> 2.772588722239781
kl_div p q | ``p log(p / q) - p + q``, which is never negative. | 2.0, 0.5 -> 1.2725887222397811
expit | Logistic function ``1 / (1 + exp(-x))``. | 0.5 -> 0.6224593312018546
logit | Inverse of `expit`: ``log(x / (1 - x))``. | 0.7 -> 0.8472978603872034
log_expit | Logarithm of `expit`, accurate for very negative ``x``. | 0.5 -> -0.4740769841801067
exprel | ``(exp(x) - 1) / x``, 1 at 0. | 0.5 -> 1.2974425414002564
expm1 | ``exp(x) - 1``, accurate near 0. | 0.5 -> 0.6487212707001282
log1p | ``log(1 + x)``, accurate near 0. | 0.5 -> 0.4054651081081644
exp2 | ``2 ** x``. | 0.5 -> 1.4142135623730951
exp10 | ``10 ** x``. | 0.5 -> 3.162277660168379
cbrt | Real cube root. | 0.5 -> 0.7937005259840998
cosm1 | ``cos(x) - 1``, accurate near 0. | 0.5 -> -0.12241743810962728
powm1 | ``x ** y - 1``, accurate near 0. | 2.0, 0.5 -> 0.41421356237309515
boxcox | Box and Cox's power ``(x**lmbda - 1) / lmbda``, ``log(x)`` for 0.
    | 2.0, 0.5 -> 0.8284271247461901
boxcox1p | `boxcox` of ``1 + x``, accurate near 0. | 2.0, 0.5 -> 1.4641016151377544
inv_boxcox | Inverse of `boxcox` in ``x``. | 2.0, 0.5 -> 4.0
inv_boxcox1p | Inverse of `boxcox1p` in ``x``. | 2.0, 0.5 -> 3.0
huber | Huber's loss: quadratic up to ``delta``, then linear. | 2.0, 0.5 -> 0.125
pseudo_huber | ``delta**2 (sqrt(1 + (r / delta)**2) - 1)``. | 2.0, 0.5 -> 0.12310562561766054
# Angles in degrees.
sindg | Sine of an angle in degrees. | 60.0 -> 0.8660254037844387
cosdg | Cosine of an angle in degrees. | 60.0 -> 0.49999999999999994
tandg | Tangent of an angle in degrees. | 60.0 -> 1.7320508075688767
cotdg | Cotangent of an angle in degrees. | 60.0 -> 0.5773502691896257
radian | Degrees, minutes and seconds in radians. | 1.0, 2.0, 3.0 -> 0.018049613347708025
round | The nearest integer, the even one of two. | 2.6 -> 3.0
# Integrals.
expi | Exponential integral Ei. | 0.5 -> 0.45421990486317354
exp1 | Exponential integral E1. | 0.5 -> 0.5597735947761608
spence | Spence's function, the dilogarithm of ``1 - x``. | 0.5 -> 0.5822405264650135
expn | Exponential integral En of integer order ``n``. | 2, 0.5 -> 0.3266438623245532
sici | Sine and cosine integrals. | 0.5 -> (0.49310741804306674, -0.17778407880661287)
shichi | Hyperbolic sine and cosine integrals. | 0.5 -> (0.5069967498196671, -0.05277684495649357)
fresnel | Fresnel's integrals of ``sin(pi t**2 / 2)`` and ``cos(pi t**2 / 2)``.
    | 0.5 -> (0.06473243285999929, 0.4923442258714464)
# Wright's functions.
wrightomega | Solution of ``w + log(w) = z``. | 0.5 -> 0.7662486081617502
wright_bessel | Wright's generalised Bessel function. | 1.3, 1.3, 1.3 -> 2.1946886163092594
log_wright_bessel | Logarithm of `wright_bessel`. | 1.3, 1.3, 1.3 -> 0.7860401760126267
# Bessel functions of order 0 and 1.
j0 | Bessel function of the first kind of order 0. | 0.5 -> 0.938469807240813
j1 | Bessel function of the first kind of order 1. | 0.5 -> 0.24226845767487387
y0 | Bessel function of the second kind of order 0. | 0.5 -> -0.4445187335067066
y1 | Bessel function of the second kind of order 1. | 0.5 -> -1.4714723926702433
i0 | Modified Bessel function of the first kind of order 0. | 0.5 -> 1.0634833707413234
i1 | Modified Bessel function of the first kind of order 1. | 0.5 -> 0.25789430539089636
i0e | ``exp(-|x|) i0(x)``. | 0.5 -> 0.64503527044915
i1e | ``exp(-|x|) i1(x)``. | 0.5 -> 0.15642080318487173
k0 | Modified Bessel function of the second kind of order 0. | 0.5 -> 0.9244190712276656
k1 | Modified Bessel function of the second kind of order 1. | 0.5 -> 1.6564411200033007
k0e | ``exp(x) k0(x)``. | 0.5 -> 1.5241093857739092
k1e | ``exp(x) k1(x)``. | 0.5 -> 2.7310097082117855
# Bessel functions of real order.
jv | Bessel function of the first kind of real order ``v``. | 1.5, 0.5 -> 0.09170169962565139
jve | ``exp(-|imag(z)|) jv(v, z)``. | 1.5, 0.5 -> 0.09170169962565139
yv | Bessel function of the second kind of real order ``v``. | 1.5, 0.5 -> -2.5214655504213384
yve | ``exp(-|imag(z)|) yv(v, z)``. | 1.5, 0.5 -> -2.5214655504213384
yn | Bessel function of the second kind of integer order ``n``. | 2, 0.5 -> -5.441370837174267
iv | Modified Bessel function of the first kind of real order ``v``.
    | 1.5, 0.5 -> 0.09640347383401678
ive | ``exp(-|real(z)|) iv(v, z)``. | 1.5, 0.5 -> 0.058471662583135825
kv | Modified Bessel function of the second kind of real order ``v``.
    | 1.5, 0.5 -> 3.225142810499761
kve | ``exp(z) kv(v, z)``. | 1.5, 0.5 -> 5.317361552716548
kn | Modified Bessel function of the second kind of integer order ``n``.
    | 2, 0.5 -> 7.550183551240869
hankel1 | Hankel function of the first kind; the result is complex.
    | 1.5, 0.5 -> 0.09170169962565144-2.5214655504213384j
hankel1e | ``exp(-1j z) hankel1(v, z)``. | 1.5, 0.5 -> -1.1283791670955126-2.2567583341910256j
hankel2 | Hankel function of the second kind; the result is complex.
    | 1.5, 0.5 -> 0.09170169962565144+2.5214655504213384j
hankel2e | ``exp(1j z) hankel2(v, z)``. | 1.5, 0.5 -> -1.1283791670955126+2.2567583341910256j
# Airy functions.
airy | Airy functions Ai and Bi, each with its derivative.
    | 0.5 -> (0.23169360648083343, -0.224910532664684,
    0.8542770431031554, 0.5445725641405924)
airye | `airy`, with factors that cancel their exponential growth.
    | 0.5 -> (0.2932771591299473, -0.28469116209194273,
    0.6748924111156304, 0.4302209614637695)
itairy | Integrals of Ai and Bi from 0 to ``x`` and to ``-x``.
    | 0.5 -> (0.14595330516334704, 0.36533846506717255,
    0.20880954780848898, 0.2500627549959552)
# Integrals.
itj0y0 | Integrals of `j0` and `y0` from 0 to ``x``.
    | 0.5 -> (0.4896805066460451, -0.5617954559146403)
iti0k0 | Integrals of `i0` and `k0` from 0 to ``x``.
    | 0.5 -> (0.5105148087974031, 0.9271025209311491)
it2j0y0 | Integrals of ``(1 - j0(t)) / t`` from 0, and of ``y0(t) / t`` from x.
    | 0.5 -> (0.031006986350915297, 0.26968853860900577)
it2i0k0 | Integrals of ``(i0(t) - 1) / t`` from 0, and of ``k0(t) / t`` from x.
    | 0.5 -> (0.031495274223672765, 0.6657510156598185)
besselpoly | Integral of ``t**lmb jv(nu, 2 a t)`` from 0 to 1. | 1.3, 1.3, 0.3 -> 0.1996383732856326
# Struve functions.
struve | Struve function of real order. | 1.5, 0.5 -> 0.017387575543565445
modstruve | Modified Struve function of real order. | 1.5, 0.5 -> 0.017877334377864554
itstruve0 | Integral of the Struve function of order 0 from 0 to ``x``. | 0.5 -> 0.07847956904452136
it2struve0 | Integral of ``struve(0, t) / t`` from ``x`` on. | 0.5 -> 1.255416134780694
itmodstruve0 | Integral of ``modstruve(0, t)`` from 0 to ``x``. | 0.5 -> 0.0806901107554135
# Kelvin functions.
ber | Kelvin function ber. | 0.5 -> 0.9990234639908382
bei | Kelvin function bei. | 0.5 -> 0.06249321838219946
ker | Kelvin function ker. | 0.5 -> 0.8559058721186341
kei | Kelvin function kei. | 0.5 -> -0.6715816950943675
berp | Derivative of `ber`. | 0.5 -> -0.007812076147507734
beip | Derivative of `bei`. | 0.5 -> 0.24991862111621022
kerp | Derivative of `ker`. | 0.5 -> -1.8197997533173529
keip | Derivative of `kei`. | 0.5 -> 0.33320379160332986
# Elliptic integrals and functions.
ellipk | Complete elliptic integral of the first kind. | 0.5 -> 1.8540746773013719
ellipkm1 | `ellipk` of ``1 - p``, accurate near its singularity. | 0.5 -> 1.8540746773013719
ellipe | Complete elliptic integral of the second kind. | 0.5 -> 1.3506438810476755
ellipkinc | Incomplete elliptic integral of the first kind. | 0.5, 0.3 -> 0.5061402119623553
ellipeinc | Incomplete elliptic integral of the second kind. | 0.5, 0.3 -> 0.49399114472896843
ellipj | Jacobi's elliptic functions. | 0.5, 0.3 -> (0.47421562271182066, 0.8804087364264624,
    0.9656789647459512, 0.4940728937110473)
elliprc | Carlson's degenerate elliptic integral. | 2.0, 0.5 -> 1.0752916200648812
elliprd | Carlson's elliptic integral of the second kind. | 1.0, 2.0, 3.0 -> 0.2904602810289907
elliprf | Carlson's elliptic integral of the first kind. | 1.0, 2.0, 3.0 -> 0.7269459354689082
elliprg | Carlson's completely symmetric elliptic integral of the second kind.
    | 1.0, 2.0, 3.0 -> 1.401847099990895
elliprj | Carlson's elliptic integral of the third kind. | 1.0, 2.0, 3.0, 4.0 -> 0.23984809974956783
agm | Arithmetic-geometric mean. | 1.0, 2.0 -> 1.4567910310469068
# Hypergeometric functions.
hyp0f1 | Confluent hypergeometric limit function. | 1.5, 0.5 -> 1.3682988720085911
hyp1f1 | Confluent hypergeometric function of the first kind. | 1.0, 2.0, 0.5 -> 1.2974425414002564
hyp2f1 | Gauss's hypergeometric function. | 1.0, 2.0, 3.0, 0.5 -> 1.545177444479562
hyperu | Confluent hypergeometric function of the second kind. | 1.0, 2.0, 0.5 -> 1.9999999999999998
eval_jacobi | Jacobi polynomial of degree ``n``. | 2, 1.0, 1.5, 0.5 -> -0.007812500000000056
eval_sh_jacobi | Shifted Jacobi polynomial of degree ``n``. | 2, 2.0, 1.5, 0.5 -> -0.0625
eval_gegenbauer | Gegenbauer polynomial of degree ``n``. | 2, 1.5, 0.5 -> 0.375
eval_genlaguerre | Generalised Laguerre polynomial of degree ``n``. | 2, 1.5, 0.5 -> 2.75
eval_laguerre | Laguerre polynomial of degree ``n``. | 2, 0.5 -> 0.125
eval_legendre | Legendre polynomial of degree ``n``. | 2, 0.5 -> -0.125
eval_sh_legendre | Shifted Legendre polynomial of degree ``n``. | 2, 0.5 -> -0.5000000000000001
eval_chebyt | Chebyshev polynomial of degree ``n``. | 2, 0.5 -> -0.5
eval_chebyu | Second Chebyshev polynomial of degree ``n``. | 2, 0.5 -> 0.0
eval_chebyc | Chebyshev C polynomial of degree ``n``. | 2, 0.5 -> -1.75
eval_chebys | Chebyshev S polynomial of degree ``n``. | 2, 0.5 -> -0.75
eval_sh_chebyt | Shifted Chebyshev polynomial of degree ``n``. | 2, 0.5 -> -1.0
eval_sh_chebyu | Shifted second Chebyshev polynomial of degree ``n``. | 2, 0.5 -> -1.0
eval_hermite | Hermite polynomial of degree ``n``. | 2, 0.5 -> -0.9999999999999998
eval_hermitenorm | Normalised Hermite polynomial of degree ``n``. | 2, 0.5 -> -0.75
lpmv | Associated Legendre function of integer order, real degree. | 1, 2, 0.5 -> -1.299038105676658
pbdv | Parabolic cylinder function D and its derivative.
    | 1.5, 0.5 -> (-0.062125634930075335, 1.2195840783258227)
pbvv | Parabolic cylinder function V and its derivative.
    | 1.5, 0.5 -> (-0.6499082518243109, -0.08477667087498605)
pbwa | Parabolic cylinder function W and its derivative.
    | 1.5, 0.5 -> (0.36645882775682176, -0.40345523997768123)
mathieu_a | Characteristic value of even Mathieu functions. | 1.0, 1.3 -> 2.0540799735139643
mathieu_b | Characteristic value of odd Mathieu functions. | 1.0, 1.3 -> -0.47953664971151966
mathieu_cem | Even Mathieu function of an angle in degrees.
    | 1.0, 1.3, 40.0 -> (0.8356280502226592, -0.1326443516161411)
mathieu_sem | Odd Mathieu function of an angle in degrees.
    | 1.0, 1.3, 40.0 -> (0.5160437196327016, 0.9309925260937829)
mathieu_modcem1 | Even modified Mathieu function of the first kind.
    | 1.0, 1.3, 0.75 -> (0.5040040729593114, -0.752701110154902)
mathieu_modcem2 | Even modified Mathieu function of the second kind.
    | 1.0, 1.3, 0.75 -> (0.2111936668695714, 0.9477186603921164)
mathieu_modsem1 | Odd modified Mathieu function of the first kind.
    | 1.0, 1.3, 0.75 -> (0.49462139759389256, -0.08853380927350468)
mathieu_modsem2 | Odd modified Mathieu function of the second kind.
    | 1.0, 1.3, 0.75 -> (-0.048652687826441825, 1.29579347612147)
pro_cv | Characteristic value of prolate spheroidal functions. | 0.0, 1.0, 3.0 -> 6.820888328663711
obl_cv | Characteristic value of oblate spheroidal functions. | 0.0, 1.0, 3.0 -> -3.899400290615351
pro_ang1 | Prolate spheroidal angular function.
    | 0.0, 1.0, 3.0, 0.5 -> (0.40683064257238544, 0.4688976248470324)
pro_ang1_cv | `pro_ang1` with a given characteristic value.
    | 0.0, 1.0, 3.0, 6.8209, 0.5 -> (0.4068305653649657, 0.46889719473610963)
pro_rad1 | Prolate spheroidal radial function of the first kind.
    | 0.0, 1.0, 3.0, 2.0 -> (-0.1666303627022495, -0.16913273075949015)
pro_rad1_cv | `pro_rad1` with a given characteristic value.
    | 0.0, 1.0, 3.0, 6.8209, 2.0 -> (-0.16663035269373372, -0.16913308902515542)
pro_rad2 | Prolate spheroidal radial function of the second kind.
    | 0.0, 1.0, 3.0, 2.0 -> (0.08812768582347615, -0.5773607726233058)
pro_rad2_cv | `pro_rad2` with a given characteristic value.
    | 0.0, 1.0, 3.0, 6.8209, 2.0 -> (0.08812780514262929, -0.5773608902670593)
obl_ang1 | Oblate spheroidal angular function.
    | 0.0, 1.0, 3.0, 0.5 -> (0.6337249759983468, 1.8475093163613487)
obl_ang1_cv | `obl_ang1` with a given characteristic value.
    | 0.0, 1.0, 3.0, -3.8994, 0.5 -> (0.6337249816174175, 1.8475093525155022)
obl_rad1 | Oblate spheroidal radial function of the first kind.
    | 0.0, 1.0, 3.0, 2.0 -> (-0.1526284039574264, 0.11518651693652475)
obl_rad1_cv | `obl_rad1` with a given characteristic value.
    | 0.0, 1.0, 3.0, -3.8994, 2.0 -> (-0.1526284035896876, 0.1151865186203592)
obl_rad2 | Oblate spheroidal radial function of the second kind.
    | 0.0, 1.0, 3.0, 2.0 -> (-0.017766590229839428, -0.42338249857004223)
obl_rad2_cv | `obl_rad2` with a given characteristic value.
    | 0.0, 1.0, 3.0, -3.8994, 2.0 -> (-0.017766590986764856, -0.423382496897987)
betaincc | ``1 - betainc(a, b, x)``, accurate where that is small. | 2.0, 3.0, 0.5 -> 0.3125
betaincinv | Inverse of `betainc` in ``x``. | 2.0, 3.0, 0.5 -> 0.3857275681323895
betainccinv | Inverse of `betaincc` in ``x``. | 2.0, 3.0, 0.5 -> 0.3857275681323895
btdtria | Inverse of the beta distribution function in ``a``. | 0.5, 2.1, 0.5 -> 2.1000000000000005
btdtrib | Inverse of the beta distribution function in ``b``. | 2.1, 0.5, 0.5 -> 2.1
stdtr | Distribution function of Student's t distribution. | 2.0, 0.5 -> 0.6666666666666666
stdtrit | Inverse of `stdtr` in ``t``. | 2.0, 0.7 -> 0.6172133998483674
stdtridf | Inverse of `stdtr` in ``df``. | 0.775, 1.05 -> 1.3039524642304468
nctdtr | Distribution function of the noncentral t distribution.
    | 4.0, 0.5, 1.0 -> 0.6607605140256818
nctdtrit | Inverse of `nctdtr` in ``t``. | 4.0, 0.5, 0.5 -> 0.532341113746265
nctdtridf | Inverse of `nctdtr` in ``df``. | 0.5, 0.5, 0.6 -> 1.3472426812637754
nctdtrinc | Inverse of `nctdtr` in ``nc``. | 4.0, 0.5, 1.0 -> 0.9375650046318806
chdtr | Distribution function of the chi-square distribution. | 2.1, 2.1 -> 0.6290368832083002
chdtrc | Survival function of the chi-square distribution. | 2.1, 2.1 -> 0.37096311679169997
chdtri | Inverse of `chdtrc` in ``x``. | 2.1, 0.5 -> 1.483268850496246
chdtriv | Inverse of `chdtr` in ``v``. | 0.5, 2.1 -> 2.7301818133658236
chndtr | Distribution function of the noncentral chi-square distribution.
    | 2.75, 2.1, 1.3 -> 0.5292697422762402
chndtrix | Inverse of `chndtr` in ``x``. | 0.5, 2.1, 1.3 -> 2.5485437180805244
chndtridf | Inverse of `chndtr` in ``df``. | 3.5, 0.45, 0.45 -> 4.105336021056997
chndtrinc | Inverse of `chndtr` in ``nc``. | 3.5, 1.4, 0.4 -> 4.061956666063444
gdtr | Distribution function of the gamma distribution of rate ``a``, shape ``b``.
    | 1.3, 2.1, 2.1 -> 0.7338929392075714
gdtrc | Survival function of the gamma distribution of rate ``a``, shape ``b``.
    | 1.3, 2.1, 2.1 -> 0.26610706079242863
gdtria | Inverse of `gdtr` in ``a``. | 0.5, 2.1, 2.1 -> 0.8465295433507358
gdtrib | Inverse of `gdtr` in ``b``. | 1.3, 0.5, 2.1 -> 3.0560898282442657
gdtrix | Inverse of `gdtr` in ``x``. | 1.3, 2.1, 0.5 -> 1.3674708007973424
pdtr | Distribution function of the Poisson distribution. | 1.0, 2.1 -> 0.37961492758424376
pdtrc | Survival function of the Poisson distribution. | 1.0, 2.1 -> 0.6203850724157562
pdtri | Inverse of `pdtr` in ``m``. | 1.0, 0.5 -> 1.6783469900166612
pdtrik | Inverse of `pdtr` in ``k``. | 0.5, 4.0 -> 3.3283804595632898
fdtr | Distribution function of Fisher's F distribution. | 2.1, 2.1, 1.3 -> 0.5671729311640527
fdtrc | Survival function of Fisher's F distribution. | 2.1, 2.1, 1.3 -> 0.4328270688359475
fdtri | Inverse of `fdtr` in ``x``. | 2.1, 2.1, 0.5 -> 1.0
fdtridfd | Inverse of `fdtr` in ``dfd``. | 2.1, 0.35, 1.3 -> 0.4595054543852344
ncfdtr | Distribution function of the noncentral F distribution.
    | 4.0, 4.0, 1.3, 1.3 -> 0.48869963229207586
ncfdtri | Inverse of `ncfdtr` in ``f``. | 4.0, 4.0, 1.3, 0.5 -> 1.3392671225496406
ncfdtridfd | Inverse of `ncfdtr` in ``dfd``. | 3.0, 0.3, 0.5, 0.7 -> 1.2510858528449083
ncfdtridfn | Inverse of `ncfdtr` in ``dfn``. | 0.42, 3.0, 0.5, 0.7 -> 1.2526033063859208
ncfdtrinc | Inverse of `ncfdtr` in ``nc``. | 3.0, 3.0, 0.3, 0.9 -> 1.9307218563883632
bdtr | Distribution function of the binomial distribution. | 1.0, 3.0, 0.5 -> 0.5
bdtrc | Survival function of the binomial distribution. | 1.0, 3.0, 0.5 -> 0.5
bdtri | Inverse of `bdtr` in ``p``. | 1.0, 3.0, 0.5 -> 0.5
bdtrik | Inverse of `bdtr` in ``k``. | 0.5, 3.0, 0.375 -> 0.5765518374295376
bdtrin | Inverse of `bdtr` in ``n``. | 1.0, 0.375, 0.375 -> 5.053354433722888
nbdtr | Distribution function of the negative binomial distribution. | 1.0, 3.0, 0.5 -> 0.3125
nbdtrc | Survival function of the negative binomial distribution. | 1.0, 3.0, 0.5 -> 0.6875
nbdtri | Inverse of `nbdtr` in ``p``. | 1.0, 3.0, 0.5 -> 0.6142724318676104
nbdtrik | Inverse of `nbdtr` in ``k``. | 0.5, 3.0, 0.375 -> 3.786567220534672
nbdtrin | Inverse of `nbdtr` in ``n``. | 3.0, 0.375, 0.375 -> 3.1558089985034576
ndtri_exp | Inverse of `log_ndtr`. | -0.5 -> 0.27028802073873587
nrdtrimn | Mean of the normal distribution with ``ndtr((x - mn) / std) = p``. | 0.5, 1.3, 1.3 -> 1.3
nrdtrisd | Deviation of the normal distribution with these quantiles.
    | 0.25, 0.75, 1.3 -> 1.5567323294308824
owens_t | Owen's T function: of ``X > h`` and ``0 < Y < a X``. | 2.0, 0.5 -> 0.008625077985521508
kolmogorov | Survival function of the Kolmogorov distribution. | 0.5 -> 0.9639452436648751
kolmogi | Inverse of `kolmogorov`. | 0.5 -> 0.8275735551899059
smirnov | Survival function of the one-sided Kolmogorov-Smirnov distribution.
    | 3.0, 0.35 -> 0.3799166666666667
smirnovi | Inverse of `smirnov` in ``d``. | 3.0, 0.5 -> 0.29715650817742434
tklmbda | Distribution function of Tukey's lambda distribution. | 0.5, 2.0 -> 1.0
""")
"""By its name: a function, from its name (and arguments) | summary | example."""

UFUNCS |= {"digamma": UFUNCS["psi"], "jn": UFUNCS["jv"]}
vars().update(UFUNCS)
__all__ = list(UFUNCS)
