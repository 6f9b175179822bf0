"""A line is seen once: on the terminal, or where the user's logging shows it there."""

from __future__ import annotations

import logging
import sys

import pytest

from checkmate_tf.progress import announce
from tests.messages import announces


@pytest.fixture
def logger():
    logger = logging.getLogger("checkmate_tf")
    before = logger.level, logger.handlers[:], logger.propagate
    yield logger
    logger.setLevel(before[0])
    logger.handlers[:] = before[1]
    logger.propagate = before[2]


def test_without_logging_it_is_printed(capsys, logger):
    announce("plan-made", "135 → 57 MiB")
    assert capsys.readouterr().err == "checkmate_tf: 135 → 57 MiB\n"


def test_a_log_on_the_terminal_shows_it_once(capsys, logger):
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(name)s %(levelname)s %(message)s"))
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    logger.propagate = False
    announce("plan-made", "135 → 57 MiB")
    assert capsys.readouterr().err == "checkmate_tf INFO 135 → 57 MiB\n"


def test_a_log_in_a_file_is_one_more_place(capsys, logger, tmp_path):
    path = tmp_path / "train.log"
    handler = logging.FileHandler(path, encoding="utf-8")
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    announce("plan-made", "135 → 57 MiB")
    handler.close()
    assert path.read_text(encoding="utf-8") == "135 → 57 MiB\n"
    assert capsys.readouterr().err == "checkmate_tf: 135 → 57 MiB\n"


def test_the_record_has_the_code(logger):
    with announces("plan-made", "57 MiB"):
        announce("plan-made", "135 → 57 MiB")
