"""Distribution functions by their older names, and their inverses.

The derivatives in the variable are densities. Derivatives in degrees of freedom and shapes exist
for the central distributions, once. Counts have none.
"""

from __future__ import annotations

from funcgrad.scipy.special.rows import ufunc

betaincc = ufunc("betaincc", "``1 - betainc(a, b, x)``, accurate where that is small.")
betaincinv = ufunc("betaincinv", "Inverse of `betainc` in ``x``.")
betainccinv = ufunc("betainccinv", "Inverse of `betaincc` in ``x``.")
btdtria = ufunc("btdtria", "Inverse of the beta distribution function in ``a``.")
btdtrib = ufunc("btdtrib", "Inverse of the beta distribution function in ``b``.")

stdtr = ufunc("stdtr", "Distribution function of Student's t distribution.")
stdtrit = ufunc("stdtrit", "Inverse of `stdtr` in ``t``.")
stdtridf = ufunc("stdtridf", "Inverse of `stdtr` in ``df``.")
nctdtr = ufunc("nctdtr", "Distribution function of the noncentral t distribution.")
nctdtrit = ufunc("nctdtrit", "Inverse of `nctdtr` in ``t``.")
nctdtridf = ufunc("nctdtridf", "Inverse of `nctdtr` in ``df``.")
nctdtrinc = ufunc("nctdtrinc", "Inverse of `nctdtr` in ``nc``.")

chdtr = ufunc("chdtr", "Distribution function of the chi-square distribution.")
chdtrc = ufunc("chdtrc", "Survival function of the chi-square distribution.")
chdtri = ufunc("chdtri", "Inverse of `chdtrc` in ``x``.")
chdtriv = ufunc("chdtriv", "Inverse of `chdtr` in ``v``.")
chndtr = ufunc("chndtr", "Distribution function of the noncentral chi-square distribution.")
chndtrix = ufunc("chndtrix", "Inverse of `chndtr` in ``x``.")
chndtridf = ufunc("chndtridf", "Inverse of `chndtr` in ``df``.")
chndtrinc = ufunc("chndtrinc", "Inverse of `chndtr` in ``nc``.")

gdtr = ufunc("gdtr", "Distribution function of the gamma distribution of rate ``a``, shape ``b``.")
gdtrc = ufunc("gdtrc", "Survival function of the gamma distribution of rate ``a``, shape ``b``.")
gdtria = ufunc("gdtria", "Inverse of `gdtr` in ``a``.")
gdtrib = ufunc("gdtrib", "Inverse of `gdtr` in ``b``.")
gdtrix = ufunc("gdtrix", "Inverse of `gdtr` in ``x``.")

pdtr = ufunc("pdtr", "Distribution function of the Poisson distribution.")
pdtrc = ufunc("pdtrc", "Survival function of the Poisson distribution.")
pdtri = ufunc("pdtri", "Inverse of `pdtr` in ``m``.")
pdtrik = ufunc("pdtrik", "Inverse of `pdtr` in ``k``.")

fdtr = ufunc("fdtr", "Distribution function of Fisher's F distribution.")
fdtrc = ufunc("fdtrc", "Survival function of Fisher's F distribution.")
fdtri = ufunc("fdtri", "Inverse of `fdtr` in ``x``.")
fdtridfd = ufunc("fdtridfd", "Inverse of `fdtr` in ``dfd``.")
ncfdtr = ufunc("ncfdtr", "Distribution function of the noncentral F distribution.")
ncfdtri = ufunc("ncfdtri", "Inverse of `ncfdtr` in ``f``.")
ncfdtridfd = ufunc("ncfdtridfd", "Inverse of `ncfdtr` in ``dfd``.")
ncfdtridfn = ufunc("ncfdtridfn", "Inverse of `ncfdtr` in ``dfn``.")
ncfdtrinc = ufunc("ncfdtrinc", "Inverse of `ncfdtr` in ``nc``.")

bdtr = ufunc("bdtr", "Distribution function of the binomial distribution.")
bdtrc = ufunc("bdtrc", "Survival function of the binomial distribution.")
bdtri = ufunc("bdtri", "Inverse of `bdtr` in ``p``.")
bdtrik = ufunc("bdtrik", "Inverse of `bdtr` in ``k``.")
bdtrin = ufunc("bdtrin", "Inverse of `bdtr` in ``n``.")
nbdtr = ufunc("nbdtr", "Distribution function of the negative binomial distribution.")
nbdtrc = ufunc("nbdtrc", "Survival function of the negative binomial distribution.")
nbdtri = ufunc("nbdtri", "Inverse of `nbdtr` in ``p``.")
nbdtrik = ufunc("nbdtrik", "Inverse of `nbdtr` in ``k``.")
nbdtrin = ufunc("nbdtrin", "Inverse of `nbdtr` in ``n``.")

ndtri_exp = ufunc("ndtri_exp", "Inverse of `log_ndtr`.")
nrdtrimn = ufunc("nrdtrimn", "Mean of the normal distribution with ``ndtr((x - mn) / std) = p``.")
nrdtrisd = ufunc("nrdtrisd", "Deviation of the normal distribution with these quantiles.")
owens_t = ufunc("owens_t", "Owen's T function: of ``X > h`` and ``0 < Y < a X``.")
kolmogorov = ufunc("kolmogorov", "Survival function of Kolmogorov's distribution.")
kolmogi = ufunc("kolmogi", "Inverse of `kolmogorov`.")
smirnov = ufunc("smirnov", "Survival function of the one-sided Kolmogorov-Smirnov distribution.")
smirnovi = ufunc("smirnovi", "Inverse of `smirnov` in ``d``.")
tklmbda = ufunc("tklmbda", "Distribution function of Tukey's lambda distribution.")
