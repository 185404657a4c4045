"""Meanings of the parameters that optimisers share, for their docstrings."""

MEANINGS = {
    "b1": "Decay of the mean of the gradient.",
    "b2": "Decay of the mean of its square.",
    "eps": "Added to the root.",
    "eps_root": "Added under the root.",
    "init_value": "The number at the begin.",
    "learning_rate": "A positive number, possibly traced, or a schedule.",
    "mask": "Which parameters decay: see `add_decayed_weights`.",
    "mu_dtype": "Dtype in which the mean is kept, by default that of the parameters.",
    "nesterov": "Whether the mean looks one step ahead.",
    "transition_begin": "How many steps come before.",
    "transition_steps": "How many steps it takes.",
}
