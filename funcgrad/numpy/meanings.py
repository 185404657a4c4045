"""Meanings of the parameters that functions of `funcgrad.numpy` share, for their docstrings."""

MEANINGS = {
    "a": "Array, number or traced value.",
    "a1": "Array, number or traced value; coefficients, the highest power first.",
    "a2": "Array, number or traced value; coefficients, the highest power first.",
    "ar1": "Array, taken as one line.",
    "ar2": "Array, taken as one line.",
    "arr": "Array.",
    "array": "Array, number or traced value.",
    "*arrays": "Arrays, or a sequence of them.",
    "arrays": "Arrays, or a sequence of them.",
    "ary": "Array that is divided.",
    "assume_unique": "The caller's promise that neither names a number twice.",
    "atol": "Allowed difference.",
    "axes": "The transformed axes; by default the last two, or all.",
    "axis": (
        "Axis, counted from the end if negative; reductions take a tuple of axes, too, or "
        "``None`` for all."
    ),
    "axis1": "First axis.",
    "axis2": "Second axis.",
    "b": "Second operand: array, number or traced value.",
    "bins": "Number of bins, or their edges.",
    "condlist": "Masks; the first one that is true decides.",
    "copy": "Whether the result never shares memory with the argument.",
    "correction": "The same as ``ddof``; this is its name in the array API.",
    "d": "Spacing of the samples.",
    "ddof": "The sum is divided by the number of elements minus ``ddof``.",
    "descending": "Whether the greatest comes first, after nan.",
    "device": '``None`` or ``"cpu"``.',
    "dtype": "Dtype to which operands are converted first, or dtype of the result.",
    "element": "Object, or values that are looked up.",
    "endpoint": "Whether ``stop`` is the last value.",
    "equal_nan": "Whether nan equals nan.",
    "fill_value": "Value of the elements, or of the elements that ``size`` adds.",
    "hermitian": "Whether the matrix is Hermitian, which is not checked.",
    "include_initial": "Whether the result begins with the value for zero elements.",
    "indices_or_sections": "Number of equal parts, or the indices at which to split.",
    "initial": "Number that the reduction begins with.",
    "inplace": "Whether to change the array, which must be an ndarray then.",
    "k": "Diagonal: 0 is the main diagonal, positive ones are above it.",
    "keepdims": "Whether reduced axes stay, with length 1.",
    "kind": "Without effect: sorting is always stable.",
    "kth": "Index of the element that is moved to its sorted position.",
    "M": "Number of columns.",
    "m": "Array.",
    "mean": "The mean, if it is known, with its axes kept.",
    "method": "How values between two elements are found, as NumPy names it.",
    "mode": "What happens at the ends or beyond them.",
    "N": "Number of rows; of ``vander``, of columns.",
    "n": (
        "Length of the transformed axis: zeros are added, or elements left out. Of frequencies, "
        "their number."
    ),
    "norm": '``"backward"``, ``"ortho"`` or ``"forward"``: which direction divides by the length.',
    "num": "How many values.",
    "obj": "Indices, as an integer, a slice or an array.",
    "offset": "Which diagonal: above the main one if positive, below it if negative.",
    "*operands": "Arrays.",
    "ord": "Which norm.",
    "order": (
        'Without effect on values; ``"C"`` or ``"F"`` where elements are counted in this order.'
    ),
    "out": "``None``; results are new arrays.",
    "out_sharding": "``None``, or the CPU.",
    "overwrite_input": "Without effect: arguments are never changed.",
    "p": "Coefficients, the highest power first; of ``unwrap``, angles.",
    "period": "Length of a turn, or of the period.",
    "precision": "Without effect: products have the full precision of their dtype.",
    "preferred_element_type": "Dtype in which products are added up.",
    "promote_integers": (
        "Whether integers narrower than 64 bits are added or multiplied in 64 bits; otherwise "
        "they keep their dtype, and may wrap."
    ),
    "q": "Shares between 0 and 1, a number or an array (of percentiles, between 0 and 100).",
    "range": "Smallest and largest value that are counted.",
    "rcond": "Singular values below this part of the greatest count as zero.",
    "rowvar": "Whether rows are variables and columns are observations.",
    "rtol": "Singular values below this multiple of the greatest count as zero.",
    "s": "Lengths of the transformed axes: zeros are added, or elements left out.",
    "shape": "Shape of the result, as an integer or a tuple.",
    "size": (
        "Number of results under ``jit``, where it has to be known: fewer are filled up, more "
        "are cut off."
    ),
    "stable": "Without effect: sorting is always stable.",
    "start": "First value; for ``rollaxis``, the position before which the axis is moved.",
    "stop": "Where to end.",
    "subscripts": 'Labels such as ``"ij,jk->ik"``; or the first operand of the interleaved form.',
    "symmetrize_input": (
        "Whether the matrix is replaced by the mean of it and its transpose first; by default only "
        "under the name jax."
    ),
    "tup": "Sequence of arrays.",
    "UPLO": '``"L"`` or ``"U"``: which triangle is read.',
    "v": (
        "Values that are placed; of ``diag``, the diagonal or a matrix; of ``correlate``, the "
        "second sequence."
    ),
    "val": "Array, number or traced value.",
    "values": "Values to insert, append or put, with a matching shape.",
    "weights": "Weight of each element.",
    "where": "Mask of the elements that count.",
    "x": "Array, number or traced value.",
    "x1": "First operand.",
    "x2": "Second operand; it broadcasts with the first one.",
    "y": "Values; of ``corrcoef`` and ``cov``, further variables.",
}
