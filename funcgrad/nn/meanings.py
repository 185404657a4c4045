"""Meanings of the parameters that functions of `funcgrad.nn` share, for their docstrings."""

MEANINGS = {
    "alpha": "Minus the limit for very negative ``x``.",
    "axis": (
        "The axis or axes that are reduced or normalised: classes, features, elements of a vector."
    ),
    "bias": "Whether there is a bias.",
    "bias_init": "Initial bias.",
    "dilation": "Distance of the elements that neighbouring taps of the kernel meet.",
    "dtype": "Dtype of the parameters, or of the result.",
    "epsilon": "Added to the variance, or to the mean of squares.",
    "features": "Number of outputs.",
    "inputs": "Array (batch, ..., features) whose axes in between are those of the window.",
    "kernel_init": "Initial kernel, `initializers`.",
    "key": "A key of random numbers.",
    "log_predictions": "Logarithms of the predicted probabilities, such as `nn.log_softmax`.",
    "logits": "Array of real numbers.",
    "momentum": "Weight of the old running statistics; PyTorch's is one minus this.",
    "out_sharding": "None: there is one device.",
    "predictions": "Array of real numbers.",
    "recurrent_init": "Initial recurrent kernel of every gate, a square matrix.",
    "scale": "Whether there is a scale.",
    "shape": "Lengths of the axes.",
    "stddev": "Standard deviation.",
    "strides": "Distance of windows, one number for all axes or one for each; by default 1.",
    "targets": "Array that broadcasts to the shape of the predictions, by default zeros.",
    "where": "Bools that broadcast: which elements, or classes, take part.",
    "window_shape": "Length of the window along every axis; an integer for one axis.",
    "x": "Array of real numbers.",
}
