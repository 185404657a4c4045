"""Command lines that examples refuse, with a message and code 2."""

from __future__ import annotations

import pytest

from tests.examples.program import check_refusal, load

REFUSED = {
    "backprop_by_hand": [
        ("--text /nowhere.txt", "argument --text: cannot read /nowhere.txt: "),
        ("--text /dev/null", "argument --text: there are fewer than 10 names in /dev/null"),
        ("--batch-size 1", "argument --batch-size: 1 is not a whole number of at least 2"),
        ("--output /nowhere/x.png", "argument --output: there is no folder /nowhere"),
    ],
    "bayes": [
        ("--draws 2", "argument --draws: 2 is not a whole number of at least 10"),
        ("--seed -3", "argument --seed: -3 is not a whole number of at least 0"),
        ("--out-dir /dev/null", "argument --out-dir: there is no folder /dev/null"),
    ],
    "broken_training": [
        ("--steps 0", "argument --steps: 0 is not a whole number of at least 1"),
        ("--seed x", "argument --seed: 'x' is not a whole number of at least 0"),
        ("--output /nowhere/x.png", "argument --output: there is no folder /nowhere"),
    ],
    "char_transformer": [
        ("--steps 0", "argument --steps: 0 is not a whole number of at least 1"),
        ("--heads 5", "argument --heads: 5 do not divide the width 64"),
        ("--text /nowhere", "argument --text: there is no file /nowhere"),
        ("--length 100000", "characters are too few"),
        ("--output /nowhere/x.png", "argument --output: there is no folder /nowhere"),
    ],
    "checkpointing": [
        ("--layers 1", "argument --layers: 1 is not a whole number of at least 4"),
        ("--rounds x", "argument --rounds: 'x' is not a whole number of at least 1"),
        ("--output /nowhere/x.png", "argument --output: there is no folder /nowhere"),
    ],
    "classical_bugs": [
        ("--seed x", "argument --seed: 'x' is not a whole number of at least 0"),
    ],
    "closed_forms": [
        ("--steps 0", "argument --steps: 0 is not a whole number of at least 1"),
        ("--batch-size 1", "argument --batch-size: 1 is not a whole number of at least 2"),
        ("--lr -1", "argument --lr: -1 is not a positive number"),
        ("--output /nowhere/x.png", "argument --output: there is no folder /nowhere"),
    ],
    "compare_optimizers": [
        ("--steps 5", "argument --steps: 5 is not a whole number of at least 20"),
        ("--valley-steps x", "argument --valley-steps: 'x' is not a whole number"),
    ],
    "cross_entropy_by_hand": [
        ("--rows 0", "argument --rows: 0 is not a whole number of at least 1"),
        ("--classes 1", "argument --classes: 1 is not a whole number of at least 2"),
    ],
    "curvature": [
        ("--steps 9", "argument --steps: 9 is not a whole number of at least 10"),
    ],
    "dead_units": [
        ("--steps 0", "argument --steps: 0 is not a whole number of at least 1"),
    ],
    "draw_digits": [
        ("--train 10", "argument --train: 10 is not a whole number of at least 200"),
        ("--out-dir /nowhere", "argument --out-dir: there is no folder /nowhere"),
    ],
    "exploding": [
        ("--lr nan", "argument --lr: nan is not a positive number"),
        ("--width 1", "argument --width: 1 is not a whole number of at least 2"),
    ],
    "four_points": [
        ("--steps 1.5", "argument --steps: '1.5' is not a whole number of at least 1"),
        ("--lr 0", "argument --lr: 0 is not a positive number"),
        ("--seed -1", "argument --seed: -1 is not a whole number of at least 0"),
        ("--output /nowhere/x.png", "argument --output: there is no folder /nowhere"),
    ],
    "gradient_flow": [
        ("--lr 0", "argument --lr: 0 is not a positive number"),
    ],
    "layers_by_hand": [
        ("--seed -1", "argument --seed: -1 is not a whole number of at least 0"),
        ("--output /nowhere/x.png", "argument --output: there is no folder /nowhere"),
    ],
    "lenet": [
        ("--epochs 0", "argument --epochs: 0 is not a whole number of at least 1"),
        ("--dropout 1", "argument --dropout: 1.0 is not less than 1"),
        ("--lr -1", "argument --lr: -1 is not a positive number"),
        ("--output /nowhere/x.png", "argument --output: there is no folder /nowhere"),
    ],
    "moons": [
        ("--steps none", "argument --steps: 'none' is not a whole number of at least 1"),
        ("--points 9", "argument --points: 9 is not a whole number of at least 10"),
        ("--noise -0.1", "argument --noise: -0.1 is not a number of at least 0"),
        ("--lr nan", "argument --lr: nan is not a positive number"),
        ("--output /nowhere/x.png", "argument --output: there is no folder /nowhere"),
    ],
    "nuts": [
        ("--draws 2", "argument --draws: 2 is not a whole number of at least 10"),
        ("--chains 0", "argument --chains: 0 is not a whole number of at least 1"),
    ],
    "physics": [
        ("--steps 3", "argument --steps: 3 is not a whole number of at least 20"),
        ("--noise much", "argument --noise: 'much' is not a number of at least 0"),
        ("--iterations 0", "argument --iterations: 0 is not a whole number of at least 1"),
        ("--orbits 0", "argument --orbits: 0 is not a whole number of at least 1"),
        ("--output /nowhere/x.png", "argument --output: there is no folder /nowhere"),
    ],
    "second_order": [
        ("--rate-steps 0", "argument --rate-steps: 0 is not a whole number of at least 1"),
        ("--seed -1", "argument --seed: -1 is not a whole number of at least 0"),
        ("--output /nowhere/x.png", "argument --output: there is no folder /nowhere"),
    ],
    "serve": [
        ("--batch 0", "argument --batch: 0 is not a whole number of at least 1"),
        ("--batch 5000", "argument --batch: 5000 is more than the 1797 images"),
        ("--threads two", "argument --threads: 'two' is not a whole number of at least 1"),
        ("--seconds 0", "argument --seconds: 0 is not a positive number"),
        ("--output /nowhere/x.png", "argument --output: there is no folder /nowhere"),
    ],
    "three_ways": [
        ("--depth 0", "argument --depth: 0 is not a whole number of at least 1"),
    ],
    "vanishing": [
        ("--depths 1", "argument --depths: 1 is not a whole number of at least 2"),
        ("--width x", "argument --width: 'x' is not a whole number of at least 10"),
        ("--output /nowhere/x.png", "argument --output: there is no folder /nowhere"),
    ],
    "xor": [
        ("--epochs 0", "argument --epochs: 0 is not a whole number of at least 1"),
        ("--lr inf", "argument --lr: inf is not a positive number"),
        ("--seed x", "argument --seed: 'x' is not a whole number of at least 0"),
        ("--output /nowhere/xor.png", "argument --output: there is no folder /nowhere"),
    ],
}


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [(name, *row) for name, rows in REFUSED.items() for row in rows],
)
def test_bad_values_end_with_a_message_and_code_2(capsys, name, arguments, message):
    check_refusal(load(name), capsys, arguments.split(), message)
