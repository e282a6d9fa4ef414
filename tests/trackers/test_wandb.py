"""W&B's offline files, read back entry by entry."""

import json

import pytest
from tests.trackers.samples import (
    HOSTILE,
    info,
    measured,
    record,
    tracked,
    wandb_records,
    wandb_rows,
    wandb_summary,
)

from fedra.trackers import WandB


def started(records):
    (found,) = [entry.run for entry in records if entry.WhichOneof("record_type") == "run"]
    return found


def test_a_run_is_read_back(tmp_path):
    rounds = [*measured(1), record(1, phase="evaluate", clients=[], num_malicious=None, metrics={"loss": 0.25})]
    tracked(WandB(), info(folder=str(tmp_path)), rounds, {"final_accuracy": 0.2, "status": "done"})
    (records,) = wandb_records(tmp_path / "wandb")
    run = started(records)
    assert (run.run_id, run.display_name, run.project) == ("digits-fedra", "digits-fedra", "fedra")
    config = {item.key: json.loads(item.value_json) for item in run.config.update}
    assert (config["rule"], config["rule_params.gamma"]) == ("fedra", "0.5")
    figures = {"kept": 2, "rejected": 1, "skipped": 0, "estimated_malicious": 1, "warnings": 0, "accuracy": 0.1}
    empty = {"kept": 0, "rejected": 0, "skipped": 0, "warnings": 0, "loss": 0.25}
    assert wandb_rows(records) == [
        {"round": 1, **{f"train/{name}": value for name, value in figures.items()}},
        {"round": 1, **{f"evaluate/{name}": value for name, value in empty.items()}},
    ]
    summary = wandb_summary(records)
    assert (summary["final/final_accuracy"], summary["final/status"]) == (0.2, "done")
    assert any(entry.WhichOneof("record_type") == "exit" for entry in records)


def test_a_note_and_warnings_are_a_text_of_their_round(tmp_path):
    tracked(WandB(folder=tmp_path), info(), [record(4, note="too few", warnings=["look at 3"])], {})
    (records,) = wandb_records(tmp_path)
    assert wandb_rows(records)[-1] == {"round": 4, "train/messages": "too few\nlook at 3"}


def test_the_parts_of_a_resumed_run_have_one_identifier(tmp_path):
    tracker = WandB(folder=tmp_path)
    tracked(tracker, info("a run / of mine"), measured(1, 2), {})
    tracked(tracker, info("a run / of mine", rounds_done=2), measured(3), {"a": 1.0})
    first, second = wandb_records(tmp_path)
    assert started(first).run_id == started(second).run_id
    assert started(first).run_id.startswith("a_run_of_mine-")
    assert [row["round"] for row in wandb_rows(first) + wandb_rows(second)] == [1, 2, 3]


def test_a_run_of_the_users_own_stays_open(tmp_path):
    import wandb

    own = wandb.init(
        mode="offline", dir=tmp_path / "own", id="own", settings=wandb.Settings(silent=True, console="off")
    )
    tracked(WandB(folder=tmp_path), info(), measured(1), {})
    own.log({"still": 1})
    own.finish()
    (records,) = wandb_records(tmp_path / "own")
    assert wandb_rows(records) == [{"still": 1}]


def test_hostile_names_and_texts_are_taken(tmp_path):
    rounds = [record(1, note=HOSTILE[1], warnings=HOSTILE, metrics=dict.fromkeys(HOSTILE, 1.0))]
    for text in HOSTILE:
        run = info(text, rule=text, settings={text: text for text in HOSTILE})
        tracked(WandB(folder=tmp_path), run, rounds, {text: text})
    found = wandb_records(tmp_path)
    assert len(found) == len(HOSTILE)
    assert len({started(records).run_id for records in found}) == len(HOSTILE)
    assert all(len(wandb_rows(records)[0]) == 6 + len(HOSTILE) for records in found)
    assert not any(path.name in ("passwd", "etc") for path in tmp_path.parent.rglob("*"))


@pytest.mark.parametrize("project", ["", None, 5])
def test_a_project_has_a_name(project):
    with pytest.raises(TypeError, match="give the name of a W&B project"):
        WandB(project=project)
