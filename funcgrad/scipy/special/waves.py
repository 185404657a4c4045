"""Parabolic cylinder, Mathieu and spheroidal wave functions of `scipy.special`, a row each.

There are derivatives in the last argument, of every order; none in the others.
"""

from funcgrad.scipy.special.rows import ufunc

pbdv = ufunc(
    "pbdv",
    "Parabolic cylinder function D and its derivative.",
    "1.5, 0.5 -> (-0.062125634930075335, 1.2195840783258227)",
)
pbvv = ufunc(
    "pbvv",
    "Parabolic cylinder function V and its derivative.",
    "1.5, 0.5 -> (-0.6499082518243109, -0.08477667087498605)",
)
pbwa = ufunc(
    "pbwa",
    "Parabolic cylinder function W and its derivative.",
    "1.5, 0.5 -> (0.36645882775682176, -0.40345523997768123)",
)
mathieu_a = ufunc(
    "mathieu_a", "Characteristic value of even Mathieu functions.", "1.0, 1.3 -> 2.0540799735139643"
)
mathieu_b = ufunc(
    "mathieu_b",
    "Characteristic value of odd Mathieu functions.",
    "1.0, 1.3 -> -0.47953664971151966",
)
mathieu_cem = ufunc(
    "mathieu_cem",
    "Even Mathieu function of an angle in degrees.",
    "1.0, 1.3, 40.0 -> (0.8356280502226592, -0.1326443516161411)",
)
mathieu_sem = ufunc(
    "mathieu_sem",
    "Odd Mathieu function of an angle in degrees.",
    "1.0, 1.3, 40.0 -> (0.5160437196327016, 0.9309925260937829)",
)
mathieu_modcem1 = ufunc(
    "mathieu_modcem1",
    "Even modified Mathieu function of the first kind.",
    "1.0, 1.3, 0.75 -> (0.5040040729593114, -0.752701110154902)",
)
mathieu_modcem2 = ufunc(
    "mathieu_modcem2",
    "Even modified Mathieu function of the second kind.",
    "1.0, 1.3, 0.75 -> (0.2111936668695714, 0.9477186603921164)",
)
mathieu_modsem1 = ufunc(
    "mathieu_modsem1",
    "Odd modified Mathieu function of the first kind.",
    "1.0, 1.3, 0.75 -> (0.49462139759389256, -0.08853380927350468)",
)
mathieu_modsem2 = ufunc(
    "mathieu_modsem2",
    "Odd modified Mathieu function of the second kind.",
    "1.0, 1.3, 0.75 -> (-0.048652687826441825, 1.29579347612147)",
)
pro_cv = ufunc(
    "pro_cv",
    "Characteristic value of prolate spheroidal functions.",
    "0.0, 1.0, 3.0 -> 6.820888328663711",
)
obl_cv = ufunc(
    "obl_cv",
    "Characteristic value of oblate spheroidal functions.",
    "0.0, 1.0, 3.0 -> -3.899400290615351",
)
pro_ang1 = ufunc(
    "pro_ang1",
    "Prolate spheroidal angular function.",
    "0.0, 1.0, 3.0, 0.5 -> (0.40683064257238544, 0.4688976248470324)",
)
pro_ang1_cv = ufunc(
    "pro_ang1_cv",
    "`pro_ang1` with a given characteristic value.",
    ("0.0, 1.0, 3.0, 6.8209, 0.5 -> (0.4068305653649657, 0.46889719473610963)"),
)
pro_rad1 = ufunc(
    "pro_rad1",
    "Prolate spheroidal radial function of the first kind.",
    "0.0, 1.0, 3.0, 2.0 -> (-0.1666303627022495, -0.16913273075949015)",
)
pro_rad1_cv = ufunc(
    "pro_rad1_cv",
    "`pro_rad1` with a given characteristic value.",
    ("0.0, 1.0, 3.0, 6.8209, 2.0 -> (-0.16663035269373372, -0.16913308902515542)"),
)
pro_rad2 = ufunc(
    "pro_rad2",
    "Prolate spheroidal radial function of the second kind.",
    "0.0, 1.0, 3.0, 2.0 -> (0.08812768582347615, -0.5773607726233058)",
)
pro_rad2_cv = ufunc(
    "pro_rad2_cv",
    "`pro_rad2` with a given characteristic value.",
    ("0.0, 1.0, 3.0, 6.8209, 2.0 -> (0.08812780514262929, -0.5773608902670593)"),
)
obl_ang1 = ufunc(
    "obl_ang1",
    "Oblate spheroidal angular function.",
    "0.0, 1.0, 3.0, 0.5 -> (0.6337249759983468, 1.8475093163613487)",
)
obl_ang1_cv = ufunc(
    "obl_ang1_cv",
    "`obl_ang1` with a given characteristic value.",
    ("0.0, 1.0, 3.0, -3.8994, 0.5 -> (0.6337249816174175, 1.8475093525155022)"),
)
obl_rad1 = ufunc(
    "obl_rad1",
    "Oblate spheroidal radial function of the first kind.",
    "0.0, 1.0, 3.0, 2.0 -> (-0.1526284039574264, 0.11518651693652475)",
)
obl_rad1_cv = ufunc(
    "obl_rad1_cv",
    "`obl_rad1` with a given characteristic value.",
    ("0.0, 1.0, 3.0, -3.8994, 2.0 -> (-0.1526284035896876, 0.1151865186203592)"),
)
obl_rad2 = ufunc(
    "obl_rad2",
    "Oblate spheroidal radial function of the second kind.",
    ("0.0, 1.0, 3.0, 2.0 -> (-0.017766590229839428, -0.42338249857004223)"),
)
obl_rad2_cv = ufunc(
    "obl_rad2_cv",
    "`obl_rad2` with a given characteristic value.",
    ("0.0, 1.0, 3.0, -3.8994, 2.0 -> (-0.017766590986764856, -0.423382496897987)"),
)
