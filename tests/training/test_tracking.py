"""TensorBoard event files, through the watcher."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from golde.errors import MissingExtraError
from golde.training import Report, train
from golde.training.tracking import EVENTS, tracking
from tiny import quick, ring


def test_event_files_hold_every_figure_once_also_after_a_kill(tmp_path: Path) -> None:
    events = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    config = quick(checkpoint_seconds=1e9)
    shown: list[Report] = []
    with tracking(tmp_path, shown.append) as track:

        def killed_after_eight(report: Report) -> None:
            track(report)
            if report.step == 8:
                raise KeyboardInterrupt  # with no checkpoint yet: all is done again

        with pytest.raises(KeyboardInterrupt):
            train(ring(), tmp_path, config, watch=killed_after_eight)
    shown.clear()
    with tracking(tmp_path, shown.append) as track:
        folder = train(ring(), tmp_path, config, resume=True, watch=track)

    found = events.EventAccumulator(str(tmp_path / EVENTS))
    found.Reload()
    losses = [(event.step, event.value) for event in found.Scalars("loss")]
    assert losses == [(report.step, pytest.approx(report.loss)) for report in shown]
    assert len(found.Scalars("queries_per_second")) == len(shown)
    assert [(event.step, event.value) for event in found.Scalars("validation_mrr")] == [
        (check["step"], pytest.approx(check["mrr"])) for check in folder.about()["validation"]
    ]
    rates = [event.value for event in found.Scalars("learning_rate")]
    assert max(rates) <= 0.02
    assert rates[0] > 10 * rates[-1] > 0

    (settings,) = found.Tensors("settings/text_summary")  # once, although it was started twice
    assert 'signature = "P3x2 Q4x2"' in settings.tensor_proto.string_val[0].decode()
    plugins = {tag: found.SummaryMetadata(tag) for tag in found.PluginTagToContent("hparams")}
    assert "_hparams_/session_start_info" in plugins
    start = plugins["_hparams_/session_start_info"].plugin_data.content
    assert b"training.learning_rate" in start
    assert b"P3x2 Q4x2" in start
    assert b"validation_mrr" in plugins["_hparams_/experiment"].plugin_data.content


def test_without_the_extra_it_is_named_and_nothing_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with (
        pytest.raises(MissingExtraError, match=r"pip install 'golde\[track\]'"),
        tracking(tmp_path),
    ):
        pass
    assert not list(tmp_path.iterdir())
