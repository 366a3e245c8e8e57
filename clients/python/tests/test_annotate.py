"""Tags, notes and links, on a real server."""

from __future__ import annotations

import urllib.request
from typing import Any

import pytest

import tandem

DEFINITION: dict[str, Any] = {
    "name": "annotated",
    "objective": [{"metric": "accuracy", "direction": "maximize"}],
    "space": {"rate": {"type": "float", "low": 0, "high": 1}},
    "budget": {"epochs": 1},
    "stop": {"trials": 2},
}


def test_tags_and_notes(real_client: tandem.Client) -> None:
    study = real_client.create_study(DEFINITION)
    study.optimize(lambda trial: trial.params["rate"])
    assert (study.tags, study.note, study.trial(0).tags) == ((), "", ())
    study.annotate(tags=["paper", "baseline"], note="with the new augmentation")
    study.annotate(tags=["odd"], note="diverges", trial=1)
    study.annotate(remove_tags=["baseline"])
    assert (study.tags, study.note) == (("paper",), "with the new augmentation")
    assert (study.trial(1).tags, study.trial(1).note) == (("odd",), "diverges")
    assert [record.tags for record in study.trials] == [(), ("odd",)]
    study.annotate(note="")
    assert study.note == ""
    with pytest.raises(tandem.InvalidError):
        study.annotate(tags=["two words, of which\none is on another line"])


def test_a_link_shows_one_study(real_client: tandem.Client) -> None:
    study = real_client.create_study({**DEFINITION, "name": "linked"})
    other = real_client.create_study({**DEFINITION, "name": "not-linked"})
    link = study.share("for Bob", days=1)
    assert link.startswith(real_client.url + "/")
    token = link.rpartition("=")[2]
    guest = tandem.Client(real_client.url, token)
    assert guest.study(study.id).name == "linked"
    with pytest.raises(tandem.TandemError):
        guest.study(other.id)
    with pytest.raises(tandem.TandemError):
        guest.study(study.id).stop()
    with urllib.request.urlopen(link) as answer:  # what is behind # stays in the browser
        assert answer.status == 200
