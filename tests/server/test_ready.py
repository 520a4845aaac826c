from pathlib import Path

from tritonforge.server.ready import IndexEntry, failure_reason, missing_models

LOG = """\
I1130 13:01:02.1 7 server.cc:1] "Collecting metrics for 'broken'"
[libprotobuf ERROR /src/text_format.cc:337] Error parsing text-format inference.ModelConfig: 1:4: no field nme
E1130 13:01:02.2 7 manager.cc:1460] "Poll failed for model directory 'broken': failed to read text proto"
E1130 13:01:02.3 7 model_lifecycle.cc:642] "failed to load 'other' version 1: Internal: gone"
"""


def test_a_model_is_ready_when_all_its_wanted_versions_are():
    index = [
        IndexEntry("a", "1", "UNAVAILABLE", "unloaded"),
        IndexEntry("a", "2", "READY", ""),
        IndexEntry("b", "1", "READY", ""),
        IndexEntry("b", "2", "LOADING", ""),
        IndexEntry("c", "", "", ""),
    ]
    assert missing_models(index, ["a"]) == []
    assert missing_models(index, ["a", "b", "c", "d"]) == ["b", "c", "d"]


def test_the_reason_for_an_unreadable_model_comes_from_the_log(tmp_path: Path):
    log = tmp_path / "log"
    log.write_text(LOG)
    assert failure_reason(log, "broken") == (
        "Poll failed for model directory 'broken': failed to read text proto (1:4: no field nme)"
    )
    assert failure_reason(log, "other") == "failed to load 'other' version 1: Internal: gone"


def test_a_model_without_an_error_in_the_log_has_no_reason(tmp_path: Path):
    log = tmp_path / "log"
    log.write_text(LOG)
    assert failure_reason(log, "fine") == ""
    assert failure_reason(tmp_path / "none", "fine") == ""
