"""The posteriors of `tests.interop.posteriors` as programs of Stan.

A program is written as data, parameters and a model. Data have the names that they have in the
function of NumPy. Where Stan declares whole numbers, they are converted, and those of at least 1
are indices, which begin there. Constants of densities may differ.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from tests.interop import posteriors

PROGRAMS: dict[str, tuple[str, str, str]] = {
    "linear": (
        "matrix[100, 3] x; vector[100] y;",
        "real a; vector[3] b; real<lower=0> s;",
        "b ~ normal(0, 1); s ~ exponential(1); y ~ normal(a + x * b, s);",
    ),
    "interaction": (
        "matrix[80, 2] x; vector[80] y;",
        "vector[4] b; real<lower=0> s;",
        "s ~ cauchy(0, 2.5); y ~ normal(b[1] + b[2] * x[:, 1] + b[3] * x[:, 2]"
        " + b[4] * (x[:, 1] .* x[:, 2]), s);",
    ),
    "robust": (
        "matrix[70, 3] x; vector[70] y;",
        "vector[3] b; real<lower=0> nu; real<lower=0> s;",
        "b ~ normal(0, 2); nu ~ exponential(0.1); s ~ exponential(1); y ~ student_t(nu, x * b, s);",
    ),
    "logistic": (
        "matrix[120, 4] x; array[120] int y;",
        "vector[4] b;",
        "b ~ normal(0, 2.5); y ~ bernoulli_logit(x * b);",
    ),
    "probit": (
        "matrix[90, 3] x; vector[90] sign;",
        "vector[3] b;",
        "b ~ normal(0, 1); target += std_normal_lcdf(sign .* (x * b));",
    ),
    "counts": (
        "matrix[90, 3] x; array[90] int y;",
        "real a; vector[3] b;",
        "a ~ normal(0, 1); b ~ normal(0, 1); y ~ poisson_log(a + x * b);",
    ),
    "overdispersed_counts": (
        "matrix[60, 2] x; array[60] int y;",
        "vector[2] b; real<lower=0> phi;",
        "b ~ normal(0, 1); phi ~ exponential(1); y ~ neg_binomial_2_log(x * b, phi);",
    ),
    "zero_inflated_counts": (
        "array[80] int y;",
        "real<lower=0> rate; real<lower=0, upper=1> zero;",
        "rate ~ exponential(1); for (n in 1:80) if (y[n] == 0)"
        " target += log_sum_exp(log(zero), log1m(zero) - rate);"
        " else target += log1m(zero) + poisson_lupmf(y[n] | rate);",
    ),
    "shares": (
        "matrix[60, 2] x; vector[60] y;",
        "vector[2] b; real<lower=0> phi;",
        "vector[60] m = inv_logit(x * b); b ~ normal(0, 1); phi ~ exponential(0.1);"
        " y ~ beta_proportion(m, phi);",
    ),
    "durations": (
        "matrix[60, 2] x; vector[60] y;",
        "vector[2] b; real<lower=0> shape;",
        "b ~ normal(0, 1); shape ~ exponential(1); y ~ gamma(shape, shape * exp(-x * b));",
    ),
    "ordinal": (
        "matrix[80, 2] x; array[80] int<lower=1> y;",
        "vector[2] b; ordered[3] cuts;",
        "b ~ normal(0, 1); cuts ~ normal(0, 2); y ~ ordered_logistic(x * b, cuts);",
    ),
    "categories": (
        "matrix[90, 3] x; array[90] int<lower=1> y;",
        "matrix[3, 4] b;",
        "matrix[90, 4] logits = x * b; to_vector(b) ~ normal(0, 1);"
        " for (n in 1:90) y[n] ~ categorical_logit(logits[n]');",
    ),
    "horseshoe": (
        "matrix[50, 12] x; vector[50] y;",
        "vector[12] z; vector<lower=0>[12] local; real<lower=0> tau; real<lower=0> s;",
        "z ~ normal(0, 1); local ~ cauchy(0, 1); tau ~ cauchy(0, 0.1); s ~ exponential(1);"
        " y ~ normal(x * (z .* local * tau), s);",
    ),
    "errors_in_variables": (
        "vector[40] x; vector[40] y;",
        "vector[40] t; real a; real b; real<lower=0> s;",
        "x ~ normal(t, 0.3); y ~ normal(a + b * t, s); t ~ normal(0, 1); s ~ exponential(1);",
    ),
    "growth": (
        "vector[27] age; vector[27] y;",
        "real<lower=0> a; real<lower=0> b; real<lower=0.5, upper=1> r; real<lower=0> s;",
        "a ~ exponential(1); b ~ exponential(1); s ~ exponential(1);"
        " y ~ normal(a - b * pow(r, age), s);",
    ),
    "schools_centered": (
        "vector[8] EFFECTS; vector[8] ERRORS;",
        "real mu; real<lower=0> tau; vector[8] theta;",
        "mu ~ normal(0, 5); tau ~ cauchy(0, 5); theta ~ normal(mu, tau);"
        " EFFECTS ~ normal(theta, ERRORS);",
    ),
    "schools_noncentered": (
        "vector[8] EFFECTS; vector[8] ERRORS;",
        "real mu; real<lower=0> tau; vector[8] z;",
        "mu ~ normal(0, 5); tau ~ cauchy(0, 5); z ~ normal(0, 1);"
        " EFFECTS ~ normal(mu + tau * z, ERRORS);",
    ),
    "radon": (
        "array[150] int<lower=1> county; vector[150] floor; vector[150] y;",
        "real mu; real<lower=0> tau; vector[20] z; real b; real<lower=0> s;",
        "vector[20] a = mu + tau * z; z ~ normal(0, 1); mu ~ normal(0, 1); b ~ normal(0, 1);"
        " tau ~ exponential(1); s ~ exponential(1); y ~ normal(a[county] + b * floor, s);",
    ),
    "varying_slopes": (
        "array[120] int<lower=1> group; vector[120] x; vector[120] y;",
        "vector[2] mu; vector<lower=0>[2] scales; real<lower=-1, upper=1> r;"
        " array[2] vector[10] z; real<lower=0> s;",
        "vector[10] first = mu[1] + scales[1] * z[1];"
        " vector[10] second = mu[2] + scales[2] * (r * z[1] + sqrt(1 - r^2) * z[2]);"
        " z[1] ~ normal(0, 1); z[2] ~ normal(0, 1); mu ~ normal(0, 1); target += log1m(r^2);"
        " scales ~ exponential(1); s ~ exponential(1);"
        " y ~ normal(first[group] + second[group] .* x, s);",
    ),
    "seeds": (
        "array[21] int n; matrix[21, 2] x; array[21] int y;",
        "real a; vector[2] b; real<lower=0> tau; vector[21] z;",
        "a ~ normal(0, 1); b ~ normal(0, 1); tau ~ exponential(1); z ~ normal(0, 1);"
        " y ~ binomial_logit(n, a + x * b + tau * z);",
    ),
    "rats": (
        "vector[5] day; matrix[30, 5] y;",
        "vector[30] a; vector[30] b; vector[2] mu; vector<lower=0>[2] tau; real<lower=0> s;",
        "a ~ normal(mu[1] * 100, tau[1] * 10); b ~ normal(mu[2] * 10, tau[2]); mu ~ normal(1, 2);"
        " tau ~ exponential(1); s ~ exponential(1);"
        " for (n in 1:30) y[n]' / 10 ~ normal((a[n] + b[n] * day) / 10, s);",
    ),
    "batting": (
        "array[18] int n; array[18] int y;",
        "real<lower=0, upper=1> m; real<lower=0> k; vector<lower=0, upper=1>[18] theta;",
        "target += -1.5 * log(k); theta ~ beta(m * k, (1 - m) * k); y ~ binomial(n, theta);",
    ),
    "spatial_counts": (
        "array[29] int<lower=1> here; array[29] int<lower=1> there; vector[30] expected;"
        " array[30] int y;",
        "real a; vector[30] phi; real<lower=0> s;",
        "target += -0.5 * dot_self(phi[here] - phi[there]); sum(phi) ~ normal(0, 0.03);"
        " s ~ exponential(1); y ~ poisson_log(a + s * phi + log(expected));",
    ),
    "process": (
        "array[25] real x; vector[25] y;",
        "real<lower=0> length; real<lower=0> scale; real<lower=0> noise;",
        "matrix[25, 25] k = add_diag(gp_exp_quad_cov(x, scale, length), square(noise));"
        " length ~ exponential(1); scale ~ exponential(1); noise ~ exponential(1);"
        " target += -1 / length;"
        " y ~ multi_normal_cholesky(rep_vector(0, 25), cholesky_decompose(k));",
    ),
    "counts_of_a_process": (
        "array[15] real x; array[15] int y;",
        "real a; real<lower=0> length; real<lower=0> scale; vector[15] z;",
        "matrix[15, 15] k = add_diag(gp_exp_quad_cov(x, scale, length), 1e-6);"
        " length ~ exponential(1); scale ~ exponential(1); z ~ normal(0, 1);"
        " y ~ poisson_log(a + cholesky_decompose(k) * z);",
    ),
    "process_of_few_waves": (
        "vector[12] k; matrix[60, 12] waves; vector[60] y;",
        "real<lower=0> length; real<lower=0> scale; real<lower=0> s; vector[12] z;",
        "vector[12] spectrum = scale * sqrt(length) * exp(-0.25 * square(length * pi() / 3 * k));"
        " length ~ exponential(1); scale ~ exponential(1); s ~ exponential(1); z ~ normal(0, 1);"
        " y ~ normal(waves * (spectrum .* z), s);",
    ),
    "autoregression": (
        "vector[80] y;",
        "real a; vector[2] b; real<lower=0> s;",
        "a ~ normal(0, 1); b ~ normal(0, 1); s ~ exponential(1);"
        " y[3:80] ~ normal(a + b[1] * y[2:79] + b[2] * y[1:78], s);",
    ),
    "moving_average": (
        "vector[40] y;",
        "real mu; real<lower=-1, upper=1> phi; real<lower=-1, upper=1> theta; real<lower=0> s;",
        "vector[40] error; error[1] = y[1] - mu;"
        " for (t in 2:40) error[t] = y[t] - mu - phi * y[t - 1] - theta * error[t - 1];"
        " mu ~ normal(0, 1); s ~ exponential(1); error ~ normal(0, s);",
    ),
    "garch": (
        "vector[50] y;",
        "real mu; real<lower=0> a; real<lower=0, upper=1> b; real<lower=0, upper=1> c;"
        " real<lower=0> first;",
        "vector[50] scale; real variance = first^2; for (t in 1:50) { scale[t] = sqrt(variance);"
        " variance = a + b * (y[t] - mu)^2 + c * (1 - b) * variance; }"
        " a ~ exponential(1); y ~ normal(mu, scale);",
    ),
    "stochastic_volatility": (
        "vector[60] y;",
        "real mu; real<lower=-1, upper=1> phi; real<lower=0> s; vector[60] h;",
        "mu ~ normal(0, 1); s ~ exponential(1); h[1] ~ normal(0, s / sqrt(1 - phi^2));"
        " h[2:60] ~ normal(phi * h[1:59], s); y ~ normal(0, exp((mu + h) / 2));",
    ),
    "local_level": (
        "vector[50] y;",
        "real<lower=0> level; real<lower=0> noise;",
        "real mean = 0; real variance = 10; for (t in 1:50) { real seen = variance + noise^2;"
        " real gain = variance / seen; y[t] ~ normal(mean, sqrt(seen));"
        " mean += gain * (y[t] - mean); variance = variance * (1 - gain) + level^2; }"
        " level ~ exponential(1); noise ~ exponential(1);",
    ),
    "local_trend": (
        "vector[25] y; matrix[2, 2] move; vector[2] see;",
        "vector<lower=0>[2] q; real<lower=0> noise;",
        "vector[2] mean = rep_vector(0, 2); matrix[2, 2] spread = diag_matrix(rep_vector(10, 2));"
        " matrix[2, 2] steps = diag_matrix(square(q)); for (t in 1:25) {"
        " vector[2] way = spread * see; real seen = dot_product(see, way) + noise^2;"
        " vector[2] gain = way / seen; y[t] ~ normal(dot_product(see, mean), sqrt(seen));"
        " mean = move * (mean + gain * (y[t] - dot_product(see, mean)));"
        " spread = move * (spread - gain * way') * move' + steps; }"
        " q ~ exponential(1); noise ~ exponential(1);",
    ),
    "hidden_states": (
        "vector[60] y;",
        "ordered[2] mu; real<lower=0> s; array[2] simplex[2] move;",
        "array[2] vector[2] into; for (i in 1:2) for (j in 1:2) into[j][i] = log(move[i][j]);"
        " array[60] vector[2] seen; for (t in 1:60)"
        " seen[t] = -0.5 * square((y[t] - mu) / s) - log(s);"
        " vector[2] forward = seen[1] - log(2); vector[2] next; for (t in 2:60) {"
        " for (j in 1:2) next[j] = log_sum_exp(forward + into[j]) + seen[t][j]; forward = next; }"
        " mu ~ normal(0, 2); s ~ exponential(1); target += log_sum_exp(forward);",
    ),
    "hidden_states_of_symbols": (
        "array[40] int<lower=1> y;",
        "array[3] simplex[3] move; array[3] simplex[4] emit;",
        "array[3] vector[3] into; for (i in 1:3) for (j in 1:3) into[j][i] = log(move[i][j]);"
        " array[4] vector[3] seen; for (i in 1:3) for (k in 1:4) seen[k][i] = log(emit[i][k]);"
        " vector[3] forward = seen[y[1]]; vector[3] next; for (t in 2:40) {"
        " for (j in 1:3) next[j] = log_sum_exp(forward + into[j]) + seen[y[t]][j];"
        " forward = next; }"
        " for (i in 1:3) target += sum(log(move[i])) + 0.5 * sum(log(emit[i]));"
        " target += log_sum_exp(forward);",
    ),
    "occupancy": (
        "matrix[50, 2] x; array[50] int y;",
        "real a; vector[2] b;",
        "vector[50] there = x * b; a ~ normal(0, 1); b ~ normal(0, 1); for (n in 1:50) {"
        " real present = y[n] * a - 5 * log1p_exp(a) - log1p_exp(-there[n]);"
        " if (y[n] == 0) target += log_sum_exp(present, -log1p_exp(there[n]));"
        " else target += present; }",
    ),
    "predators": (
        "matrix[20, 2] y;",
        "vector<lower=0>[4] rates; vector<lower=0>[2] first; real<lower=0> s;",
        "vector[2] u = first; matrix[20, 2] found; for (t in 1:20) {"
        " vector[2] k1 = slope(u, rates); vector[2] k2 = slope(u + 0.05 * k1, rates);"
        " vector[2] k3 = slope(u + 0.05 * k2, rates); vector[2] k4 = slope(u + 0.1 * k3, rates);"
        " u += 0.1 / 6 * (k1 + 2 * k2 + 2 * k3 + k4); found[t] = u'; }"
        " log(rates) ~ normal(-1, 1); log(first) ~ normal(2, 1); s ~ exponential(1);"
        " to_vector(log(y)) ~ normal(to_vector(log(found)), s);",
    ),
    "epidemic": (
        "array[14] int y;",
        "real<lower=0> contacts; real<lower=0> leaves; real<lower=0, upper=1> first;",
        "vector[2] u = [1 - first, first]'; vector[14] found; for (t in 1:28) {"
        " vector[2] k1 = slope(u, contacts, leaves);"
        " vector[2] k2 = slope(u + 0.25 * k1, contacts, leaves);"
        " vector[2] k3 = slope(u + 0.25 * k2, contacts, leaves);"
        " vector[2] k4 = slope(u + 0.5 * k3, contacts, leaves);"
        " u += 0.5 / 6 * (k1 + 2 * k2 + 2 * k3 + k4); if (t % 2 == 0) found[t %/% 2] = u[2]; }"
        " contacts ~ exponential(1); leaves ~ exponential(1); first ~ exponential(10);"
        " y ~ poisson(200 * found);",
    ),
    "elimination": (
        "vector[15] t; vector[15] y;",
        "real<lower=0> dose; real<lower=0> slow; real<lower=0> more; real<lower=0> s;",
        "real fast = slow + more;"
        " vector[15] level = dose * fast / (fast - slow) * (exp(-slow * t) - exp(-fast * t));"
        " log(dose) ~ normal(1, 1); slow ~ exponential(1); more ~ exponential(1);"
        " s ~ exponential(1); log(y) ~ normal(log(level), s);",
    ),
    "items_of_one_slope": (
        "array[160] int<lower=1> person; array[160] int<lower=1> item; array[160] int y;",
        "vector[20] a; vector[8] b;",
        "a ~ normal(0, 1); b ~ normal(0, 1); y ~ bernoulli_logit(a[person] - b[item]);",
    ),
    "items": (
        "array[25, 10] int y;",
        "vector[25] a; vector[10] b; vector<lower=0>[10] slope; real mu; real<lower=0> tau;",
        "a ~ normal(0, 1); b ~ normal(mu, tau); log(slope) ~ normal(0, 1); mu ~ normal(0, 1);"
        " tau ~ exponential(1); for (n in 1:25) y[n] ~ bernoulli_logit(slope .* (a[n] - b));",
    ),
    "pairs": (
        "array[60] int<lower=1> first; array[60] int<lower=1> second; array[60] int y;",
        "vector[8] z; real<lower=0> s;",
        "vector[8] skill = s * z; z ~ normal(0, 1); s ~ exponential(1);"
        " y ~ bernoulli_logit(skill[first] - skill[second]);",
    ),
    "mixture_of_two": (
        "vector[80] y;",
        "ordered[2] mu; vector<lower=0>[2] s; real<lower=0, upper=1> w;",
        "mu ~ normal(0, 2); s ~ exponential(1); for (n in 1:80) target += log_mix(w,"
        " normal_lpdf(y[n] | mu[1], s[1]), normal_lpdf(y[n] | mu[2], s[2]));",
    ),
    "mixture_of_points": (
        "array[60] vector[2] y;",
        "array[3] vector[2] mu; vector<lower=0>[3] s; simplex[3] w;",
        "s ~ exponential(1); target += sum(log(w)); for (k in 1:3) mu[k] ~ normal(0, 3);"
        " for (n in 1:60) { vector[3] parts = log(w); for (k in 1:3)"
        " parts[k] += normal_lupdf(y[n] | mu[k], s[k]); target += log_sum_exp(parts); }",
    ),
    "topics": (
        "array[100] int<lower=1> words; array[100] int<lower=1> document;",
        "array[5] simplex[3] of_documents; array[3] simplex[12] of_topics;",
        "for (d in 1:5) target += sum(log(of_documents[d]));"
        " for (k in 1:3) target += sum(log(of_topics[k])); for (n in 1:100) { real share = 0;"
        " for (k in 1:3) share += of_documents[document[n]][k] * of_topics[k][words[n]];"
        " target += log(share); }",
    ),
    "weibull": (
        "matrix[70, 2] x; vector[70] t; array[70] int is_seen;",
        "vector[2] b; real<lower=0> shape;",
        "vector[70] mean = exp(x * b); b ~ normal(0, 1); shape ~ exponential(1);"
        " for (n in 1:70) if (is_seen[n]) t[n] ~ weibull(shape, mean[n]);"
        " else target += weibull_lccdf(t[n] | shape, mean[n]);",
    ),
    "frailty": (
        "array[60] int<lower=1> group; vector[60] t; vector[60] is_seen;",
        "real a; real<lower=0> tau; vector[10] z;",
        "vector[60] rate = a + tau * z[group]; z ~ normal(0, 1); a ~ normal(0, 1);"
        " tau ~ exponential(1); target += dot_product(is_seen, rate) - dot_product(t, exp(rate));",
    ),
    "proportional_hazards": (
        "matrix[50, 3] x; vector[50] is_seen;",
        "vector[3] b;",
        "vector[50] eta = x * b;"
        " vector[50] at_risk = reverse(cumulative_sum(reverse(exp(eta)))); b ~ normal(0, 1);"
        " target += dot_product(is_seen, eta - log(at_risk));",
    ),
}
"""Data, parameters and models."""

FUNCTIONS = {
    "predators": "vector slope(vector u, vector r)"
    " { return [u[1] * (r[1] - r[2] * u[2]), u[2] * (r[3] * u[1] - r[4])]'; }",
    "epidemic": "vector slope(vector u, real contacts, real leaves)"
    " { real fresh = contacts * u[1] * u[2]; return [-fresh, fresh - leaves * u[2]]'; }",
}
"""Functions that models call."""

DECLARED = re.compile(r"(\S.*?) (\w+);")
"""Types and names of data and parameters."""


def code_of(name: str) -> str:
    """The text of a program."""
    data, parameters, model = PROGRAMS[name]
    functions = f"functions {{ {FUNCTIONS[name]} }} " if name in FUNCTIONS else ""
    return f"{functions}data {{ {data} }} parameters {{ {parameters} }} model {{ {model} }}"


def data_of(name: str, log_density: Callable[[Any], Any]) -> dict[str, Any]:
    """The data that a function holds, as those of its program."""
    known = inspect.getclosurevars(log_density)
    names = {**vars(posteriors), **known.globals, **known.nonlocals}
    found = {}
    for kind, key in DECLARED.findall(PROGRAMS[name][0]):
        value = np.asarray(names[key])
        if " int" in kind:
            value = value.astype(int) + ("lower=1" in kind)
        found[key] = value.tolist()
    return found


def order_of(name: str, example: dict[str, Any]) -> np.ndarray | None:
    """Where the elements of Stan's vector are in ours; nothing if constraints differ."""
    if "simplex" in PROGRAMS[name][1]:
        return None
    starts, start = {}, 0
    for key in sorted(example):
        starts[key] = start
        start += np.size(example[key])
    parts = []
    for kind, key in DECLARED.findall(PROGRAMS[name][1]):
        places = starts[key] + np.arange(np.size(example[key])).reshape(np.shape(example[key]))
        parts.append((places.T if "matrix" in kind else places).ravel())
    return np.concatenate(parts)
