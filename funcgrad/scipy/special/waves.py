"""Parabolic cylinder, Mathieu and spheroidal wave functions of `scipy.special`, a row each.

There are derivatives in the last argument, of every order; none in the others.
"""

from __future__ import annotations

from funcgrad.scipy.special.rows import ufunc

pbdv = ufunc("pbdv", "Parabolic cylinder function D and its derivative.")
pbvv = ufunc("pbvv", "Parabolic cylinder function V and its derivative.")
pbwa = ufunc("pbwa", "Parabolic cylinder function W and its derivative.")
mathieu_a = ufunc("mathieu_a", "Characteristic value of even Mathieu functions.")
mathieu_b = ufunc("mathieu_b", "Characteristic value of odd Mathieu functions.")
mathieu_cem = ufunc("mathieu_cem", "Even Mathieu function of an angle in degrees.")
mathieu_sem = ufunc("mathieu_sem", "Odd Mathieu function of an angle in degrees.")
mathieu_modcem1 = ufunc("mathieu_modcem1", "Even modified Mathieu function of the first kind.")
mathieu_modcem2 = ufunc("mathieu_modcem2", "Even modified Mathieu function of the second kind.")
mathieu_modsem1 = ufunc("mathieu_modsem1", "Odd modified Mathieu function of the first kind.")
mathieu_modsem2 = ufunc("mathieu_modsem2", "Odd modified Mathieu function of the second kind.")
pro_cv = ufunc("pro_cv", "Characteristic value of prolate spheroidal functions.")
obl_cv = ufunc("obl_cv", "Characteristic value of oblate spheroidal functions.")
pro_ang1 = ufunc("pro_ang1", "Prolate spheroidal angular function.")
pro_ang1_cv = ufunc("pro_ang1_cv", "`pro_ang1` with a given characteristic value.")
pro_rad1 = ufunc("pro_rad1", "Prolate spheroidal radial function of the first kind.")
pro_rad1_cv = ufunc("pro_rad1_cv", "`pro_rad1` with a given characteristic value.")
pro_rad2 = ufunc("pro_rad2", "Prolate spheroidal radial function of the second kind.")
pro_rad2_cv = ufunc("pro_rad2_cv", "`pro_rad2` with a given characteristic value.")
obl_ang1 = ufunc("obl_ang1", "Oblate spheroidal angular function.")
obl_ang1_cv = ufunc("obl_ang1_cv", "`obl_ang1` with a given characteristic value.")
obl_rad1 = ufunc("obl_rad1", "Oblate spheroidal radial function of the first kind.")
obl_rad1_cv = ufunc("obl_rad1_cv", "`obl_rad1` with a given characteristic value.")
obl_rad2 = ufunc("obl_rad2", "Oblate spheroidal radial function of the second kind.")
obl_rad2_cv = ufunc("obl_rad2_cv", "`obl_rad2` with a given characteristic value.")
