"""The picture of memory during a step."""

from __future__ import annotations

from matplotlib import image

from checkmate_tf.cli.plots import draw_timelines


def test_a_picture_of_two_schedules(tmp_path):
    path = tmp_path / "timelines.png"
    mebibyte = 2**20
    draw_timelines(
        path,
        timelines={"plain": [mebibyte, 5 * mebibyte, mebibyte], "ours": [mebibyte, 3 * mebibyte]},
        measured={"plain": 5 * mebibyte, "ours": 3 * mebibyte},
        budget=4 * mebibyte,
        title="memory",
    )
    picture = image.imread(path)
    assert picture.shape[0] > 300
    # The budget's line is red from left to right.
    red = (picture[..., 0] > 0.8) & (picture[..., 1] < 0.3)
    assert red.sum(axis=1).max() > picture.shape[1] / 3
