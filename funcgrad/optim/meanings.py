"""Meanings of the parameters that optimisers share, for their docstrings."""

MEANINGS = {
    "accumulator_dtype": "Dtype of the sum or mean, by default that of the parameters.",
    "b1": "Decay of the mean of the gradient.",
    "b2": "Decay of the mean of its square.",
    "bias_correction": "Whether the means are corrected for their start.",
    "decay": "Decay of the mean.",
    "decay_rate": "The factor.",
    "div_factor": "The largest value divided by the first.",
    "end_value": "The number at the end, and from there on.",
    "eps": "Added to the root.",
    "eps_in_sqrt": "Whether `eps` is added under the root. PyTorch adds it to the root.",
    "eps_root": (
        "Added under the root: a positive one makes derivatives through the first steps finite "
        "where the gradient is zero."
    ),
    "final_div_factor": "The first value divided by the last.",
    "init_value": "The number at the begin.",
    "initial_accumulator_value": "Where the sum starts.",
    "initial_scale": "Where the mean starts.",
    "learning_rate": "A positive number, possibly traced, or a schedule.",
    "mask": "Which parameters decay: see `add_decayed_weights`.",
    "max_learning_rate": "The largest step; by default there is none.",
    "memory_size": "How many changes of the gradient are remembered.",
    "momentum": "Share of the earlier steps that is kept: see `trace`.",
    "mu_dtype": "Dtype in which the mean is kept, by default that of the parameters.",
    "nesterov": "Whether the mean looks one step ahead (Dozat, 2016).",
    "pct_start": "The share of the steps after which it is reached.",
    "peak_value": "The largest value.",
    "slope_rtol": "``c1`` in the condition of decrease.",
    "staircase": "Whether it changes only every ``transition_steps`` steps.",
    "transition_begin": "How many steps come before.",
    "transition_steps": "How many steps it takes.",
    "warmup_steps": "How many steps the ascent takes.",
    "weight_decay": "The share of a weight that is subtracted, times the learning rate.",
}
