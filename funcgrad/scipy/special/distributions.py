"""Distribution functions by their older names, and their inverses.

The derivatives in the variable are densities. Derivatives in degrees of freedom and shapes exist
for the central distributions, once. Counts have none.
"""

from funcgrad.scipy.special.rows import ufunc

betaincc = ufunc(
    "betaincc", "``1 - betainc(a, b, x)``, accurate where that is small.", "2.0, 3.0, 0.5 -> 0.3125"
)
betaincinv = ufunc(
    "betaincinv", "Inverse of `betainc` in ``x``.", "2.0, 3.0, 0.5 -> 0.3857275681323895"
)
betainccinv = ufunc(
    "betainccinv", "Inverse of `betaincc` in ``x``.", "2.0, 3.0, 0.5 -> 0.3857275681323895"
)
btdtria = ufunc(
    "btdtria",
    "Inverse of the beta distribution function in ``a``.",
    "0.5, 2.1, 0.5 -> 2.1000000000000005",
)
btdtrib = ufunc(
    "btdtrib", "Inverse of the beta distribution function in ``b``.", "2.1, 0.5, 0.5 -> 2.1"
)

stdtr = ufunc(
    "stdtr", "Distribution function of Student's t distribution.", "2.0, 0.5 -> 0.6666666666666666"
)
stdtrit = ufunc("stdtrit", "Inverse of `stdtr` in ``t``.", "2.0, 0.7 -> 0.6172133998483674")
stdtridf = ufunc("stdtridf", "Inverse of `stdtr` in ``df``.", "0.775, 1.05 -> 1.3039524642304468")
nctdtr = ufunc(
    "nctdtr",
    "Distribution function of the noncentral t distribution.",
    "4.0, 0.5, 1.0 -> 0.6607605140256818",
)
nctdtrit = ufunc("nctdtrit", "Inverse of `nctdtr` in ``t``.", "4.0, 0.5, 0.5 -> 0.532341113746265")
nctdtridf = ufunc(
    "nctdtridf", "Inverse of `nctdtr` in ``df``.", "0.5, 0.5, 0.6 -> 1.3472426812637754"
)
nctdtrinc = ufunc(
    "nctdtrinc", "Inverse of `nctdtr` in ``nc``.", "4.0, 0.5, 1.0 -> 0.9375650046318806"
)

chdtr = ufunc(
    "chdtr",
    "Distribution function of the chi-square distribution.",
    "2.1, 2.1 -> 0.6290368832083002",
)
chdtrc = ufunc(
    "chdtrc", "Survival function of the chi-square distribution.", "2.1, 2.1 -> 0.37096311679169997"
)
chdtri = ufunc("chdtri", "Inverse of `chdtrc` in ``x``.", "2.1, 0.5 -> 1.483268850496246")
chdtriv = ufunc("chdtriv", "Inverse of `chdtr` in ``v``.", "0.5, 2.1 -> 2.7301818133658236")
chndtr = ufunc(
    "chndtr",
    "Distribution function of the noncentral chi-square distribution.",
    "2.75, 2.1, 1.3 -> 0.5292697422762402",
)
chndtrix = ufunc("chndtrix", "Inverse of `chndtr` in ``x``.", "0.5, 2.1, 1.3 -> 2.5485437180805244")
chndtridf = ufunc(
    "chndtridf", "Inverse of `chndtr` in ``df``.", "3.5, 0.45, 0.45 -> 4.105336021056997"
)
chndtrinc = ufunc(
    "chndtrinc", "Inverse of `chndtr` in ``nc``.", "3.5, 1.4, 0.4 -> 4.061956666063444"
)

gdtr = ufunc(
    "gdtr",
    "Distribution function of the gamma distribution of rate ``a``, shape ``b``.",
    "1.3, 2.1, 2.1 -> 0.7338929392075714",
)
gdtrc = ufunc(
    "gdtrc",
    "Survival function of the gamma distribution of rate ``a``, shape ``b``.",
    "1.3, 2.1, 2.1 -> 0.26610706079242863",
)
gdtria = ufunc("gdtria", "Inverse of `gdtr` in ``a``.", "0.5, 2.1, 2.1 -> 0.8465295433507358")
gdtrib = ufunc("gdtrib", "Inverse of `gdtr` in ``b``.", "1.3, 0.5, 2.1 -> 3.0560898282442657")
gdtrix = ufunc("gdtrix", "Inverse of `gdtr` in ``x``.", "1.3, 2.1, 0.5 -> 1.3674708007973424")

pdtr = ufunc(
    "pdtr", "Distribution function of the Poisson distribution.", "1.0, 2.1 -> 0.37961492758424376"
)
pdtrc = ufunc(
    "pdtrc", "Survival function of the Poisson distribution.", "1.0, 2.1 -> 0.6203850724157562"
)
pdtri = ufunc("pdtri", "Inverse of `pdtr` in ``m``.", "1.0, 0.5 -> 1.6783469900166612")
pdtrik = ufunc("pdtrik", "Inverse of `pdtr` in ``k``.", "0.5, 4.0 -> 3.3283804595632898")

fdtr = ufunc(
    "fdtr",
    "Distribution function of Fisher's F distribution.",
    "2.1, 2.1, 1.3 -> 0.5671729311640527",
)
fdtrc = ufunc(
    "fdtrc", "Survival function of Fisher's F distribution.", "2.1, 2.1, 1.3 -> 0.4328270688359475"
)
fdtri = ufunc("fdtri", "Inverse of `fdtr` in ``x``.", "2.1, 2.1, 0.5 -> 1.0")
fdtridfd = ufunc(
    "fdtridfd", "Inverse of `fdtr` in ``dfd``.", "2.1, 0.35, 1.3 -> 0.4595054543852344"
)
ncfdtr = ufunc(
    "ncfdtr",
    "Distribution function of the noncentral F distribution.",
    "4.0, 4.0, 1.3, 1.3 -> 0.48869963229207586",
)
ncfdtri = ufunc(
    "ncfdtri", "Inverse of `ncfdtr` in ``f``.", "4.0, 4.0, 1.3, 0.5 -> 1.3392671225496406"
)
ncfdtridfd = ufunc(
    "ncfdtridfd", "Inverse of `ncfdtr` in ``dfd``.", "3.0, 0.3, 0.5, 0.7 -> 1.2510858528449083"
)
ncfdtridfn = ufunc(
    "ncfdtridfn", "Inverse of `ncfdtr` in ``dfn``.", "0.42, 3.0, 0.5, 0.7 -> 1.2526033063859208"
)
ncfdtrinc = ufunc(
    "ncfdtrinc", "Inverse of `ncfdtr` in ``nc``.", "3.0, 3.0, 0.3, 0.9 -> 1.9307218563883632"
)

bdtr = ufunc("bdtr", "Distribution function of the binomial distribution.", "1.0, 3.0, 0.5 -> 0.5")
bdtrc = ufunc("bdtrc", "Survival function of the binomial distribution.", "1.0, 3.0, 0.5 -> 0.5")
bdtri = ufunc("bdtri", "Inverse of `bdtr` in ``p``.", "1.0, 3.0, 0.5 -> 0.5")
bdtrik = ufunc("bdtrik", "Inverse of `bdtr` in ``k``.", "0.5, 3.0, 0.375 -> 0.5765518374295376")
bdtrin = ufunc("bdtrin", "Inverse of `bdtr` in ``n``.", "1.0, 0.375, 0.375 -> 5.053354433722888")
nbdtr = ufunc(
    "nbdtr",
    "Distribution function of the negative binomial distribution.",
    "1.0, 3.0, 0.5 -> 0.3125",
)
nbdtrc = ufunc(
    "nbdtrc", "Survival function of the negative binomial distribution.", "1.0, 3.0, 0.5 -> 0.6875"
)
nbdtri = ufunc("nbdtri", "Inverse of `nbdtr` in ``p``.", "1.0, 3.0, 0.5 -> 0.6142724318676104")
nbdtrik = ufunc("nbdtrik", "Inverse of `nbdtr` in ``k``.", "0.5, 3.0, 0.375 -> 3.786567220534672")
nbdtrin = ufunc(
    "nbdtrin", "Inverse of `nbdtr` in ``n``.", "3.0, 0.375, 0.375 -> 3.1558089985034576"
)

ndtri_exp = ufunc("ndtri_exp", "Inverse of `log_ndtr`.", "-0.5 -> 0.27028802073873587")
nrdtrimn = ufunc(
    "nrdtrimn",
    "Mean of the normal distribution with ``ndtr((x - mn) / std) = p``.",
    "0.5, 1.3, 1.3 -> 1.3",
)
nrdtrisd = ufunc(
    "nrdtrisd",
    "Deviation of the normal distribution with these quantiles.",
    "0.25, 0.75, 1.3 -> 1.5567323294308824",
)
owens_t = ufunc(
    "owens_t",
    "Owen's T function: of ``X > h`` and ``0 < Y < a X``.",
    "2.0, 0.5 -> 0.008625077985521508",
)
kolmogorov = ufunc(
    "kolmogorov", "Survival function of the Kolmogorov distribution.", "0.5 -> 0.9639452436648751"
)
kolmogi = ufunc("kolmogi", "Inverse of `kolmogorov`.", "0.5 -> 0.8275735551899059")
smirnov = ufunc(
    "smirnov",
    "Survival function of the one-sided Kolmogorov-Smirnov distribution.",
    "3.0, 0.35 -> 0.3799166666666667",
)
smirnovi = ufunc("smirnovi", "Inverse of `smirnov` in ``d``.", "3.0, 0.5 -> 0.29715650817742434")
tklmbda = ufunc(
    "tklmbda", "Distribution function of Tukey's lambda distribution.", "0.5, 2.0 -> 1.0"
)
