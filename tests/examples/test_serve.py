"""Serving: every answer of every thread is the uncompiled model's."""

from __future__ import annotations

import numpy as np
import pytest

from tests.examples.program import check_picture, load, run

example = load("serve")


@pytest.mark.nightly
def test_answers_equal_those_of_the_uncompiled_model_in_every_thread(tmp_path, capsys):
    options = ("--seconds", 0.02, "--threads", 3, 1, "--output", tmp_path / "serve.png")
    loads = run(example, *options)
    cases = [(load.batch, load.threads) for load in loads]
    assert cases == [(batch, threads) for batch in (1, 32, 256) for threads in (1, 3)]
    for each in loads:
        assert len(each.latencies) >= each.threads
        assert each.error < 2e-6
        assert each.rate > 0
    table = capsys.readouterr().out
    assert "the model names 9" in table
    assert "  256        3" in table
    check_picture(tmp_path / "serve.png")


def test_a_wrong_answer_is_noticed():
    params = example.init_params(example.fg.random.key(0))
    images = np.random.default_rng(0).uniform(size=(20, 64)).astype(np.float32)

    def wrong(params, x):
        return example.predict(params, x) + 0.25

    found = example.measure(wrong, params, images, batch=4, threads=2, seconds=0.001)
    assert found.error == pytest.approx(0.25, rel=1e-5)
