"""Through NVFlare's own export and back: no parameter is lost on the way to the server."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from nvflare.app_common.np.recipes.fedavg import NumpyFedAvgRecipe
from nvflare.fuel.utils.component_builder import ComponentBuilder

import fedra
from fedra import WarningLimits
from fedra.audit import AuditLog
from fedra.nvflare import Observer, RobustAggregator
from fedra.nvflare.recipe import members
from fedra.optimizers import SGD, Adam, FedAdam


@dataclasses.dataclass(kw_only=True, eq=False)
class Plotter(Observer):
    folder: object = None
    colours: object = ("red",)
    inner: object = None


class Forgetful(Observer):
    def __init__(self, folder: str) -> None:
        self.place = folder


class Greedy(Observer):
    def __init__(self, **options: object) -> None:
        self.options = options


class Slotted(Observer):
    __slots__ = ("folder",)

    def __init__(self, folder: str) -> None:
        object.__setattr__(self, "_hidden", folder)


class Outer:
    class Inner(Observer):
        pass


class Builder(ComponentBuilder):
    def get_module_scanner(self):
        return None


def exported(aggregator: RobustAggregator, folder: Path) -> dict:
    recipe = NumpyFedAvgRecipe(
        name="job",
        model=[[1.0]],
        min_clients=2,
        num_rounds=2,
        train_script=str(Path(__file__)),
        aggregator=aggregator,
    )
    recipe.export(str(folder))
    config = json.loads((folder / "job" / "app" / "config" / "config_fed_server.json").read_text())
    return config["workflows"][0]["args"]["aggregator"]


def back(aggregator: RobustAggregator, folder: Path) -> RobustAggregator:
    made = Builder().build_component(exported(aggregator, folder))
    assert type(made) is RobustAggregator
    return made


OPTIONS = {
    "nothing": {},
    "a name": {"rule": "median"},
    "a rule": {"rule": fedra.FedRA(malicious_ratio=0.2, clamp=True, num_clients=9)},
    "optimizer": {"server_optimizer": Adam(lr=0.25, beta1=0.5)},
    "optimizer's name": {"server_optimizer": "fedadam"},
    "key": {"quantity_key": "samples"},
    "no key": {"quantity_key": None},
    "paths": {"audit": Path("/x/audit.jsonl"), "state": Path("/x/state.npz")},
    "texts": {"audit": "{WORKSPACE}/audit-{JOB_ID}.jsonl", "state": "state.npz"},
    "threads": {"threads": 3},
    "disk": {"on_disk_error": "stop"},
    "warnings": {"warn_at": WarningLimits(share=0.3, streak=2)},
    "all": {
        "rule": fedra.RULES["multi-krum"](num_malicious=2),
        "server_optimizer": FedAdam(tau=0.5),
        "quantity_key": "n",
        "audit": "a",
        "state": "s",
        "threads": 1,
        "on_disk_error": "stop",
        "warn_at": WarningLimits(excess=3),
    },
}


@pytest.mark.parametrize("case", OPTIONS)
def test_every_parameter_comes_back(case: str, tmp_path) -> None:
    options = OPTIONS[case]
    made = back(RobustAggregator(**options), tmp_path)
    plain = RobustAggregator(**options)
    for name in RobustAggregator.__init__.__kwdefaults__:
        assert getattr(made, name) == getattr(plain, name), name
    for name, value in options.items():
        assert getattr(made, name) == (str(value) if isinstance(value, Path) else value)


@pytest.mark.parametrize("name", fedra.RULES)
def test_every_rule_comes_back(name: str, tmp_path) -> None:
    rule = fedra.make_rule(name)
    changed = {field.name: 0.125 for field in dataclasses.fields(rule) if type(getattr(rule, field.name)) is float}
    rule = dataclasses.replace(rule, **changed)
    assert back(RobustAggregator(rule=rule), tmp_path).rule == rule


@pytest.mark.parametrize("optimizer", [SGD(lr=0.3), Adam(eps=1e-3), FedAdam(beta2=0.5)])
def test_every_optimizer_comes_back(optimizer, tmp_path) -> None:
    assert back(RobustAggregator(server_optimizer=optimizer), tmp_path).server_optimizer == optimizer


@pytest.mark.parametrize("count", [0, 1, 2, 3])
def test_observers_come_back(count: int, tmp_path) -> None:
    observers = [Plotter(folder=f"f{place}", colours=["a", "b"], inner=Plotter(folder="x")) for place in range(count)]
    # The class is in a file without a package, as that of a user's own job is.
    with pytest.MonkeyPatch.context() as patch:
        module = sys.modules[Plotter.__module__]
        patch.setitem(sys.modules, "test_recipe", module)
        patch.setattr(Plotter, "__module__", "test_recipe")
        made = members(back(RobustAggregator(observers=observers), tmp_path).observers)
    assert [one.folder for one in made] == [one.folder for one in observers]
    assert all(type(one) is Plotter and one.inner.folder == "x" and one.colours == ["a", "b"] for one in made)
    if count:
        assert (tmp_path / "job" / "app" / "custom" / "test_recipe.py").exists()


def test_one_observer_needs_no_list() -> None:
    one = Plotter(folder="x")
    assert RobustAggregator(observers=one).observers is one
    assert members(RobustAggregator(observers=[one]).observers) == (one,)
    assert members(RobustAggregator(observers=(each for each in (one, Plotter()))).observers)[0] is one


WRONG = {
    "rule": [(5, "rule"), (fedra.FedRA, "instance of a class"), (lambda c: c, "functions"), ("fedr", "fedra")],
    "server_optimizer": [
        (5, "server_optimizer=5; give an optimizer"),
        (Adam, "instance of a class"),
        ("adm", "did you mean 'adam'"),
        (Adam(lr=np.float64(0.1)), r"server_optimizer.lr=np.float64\(0.1\); give a plain Python number, float"),
    ],
    "quantity_key": [(5, "quantity_key=5; give a text")],
    "audit": [(5, "audit=5; give the path"), ("", "audit=''; give the path")],
    "state": [(b"x", "state=b'x'; give the path of a file")],
    "threads": [(0, "threads=0"), (True, "threads=True"), (np.int64(2), "plain Python number")],
    "on_disk_error": [("never", "valid: stop, warn")],
    "warn_at": [(0.5, "WarningLimits"), ({"share": 0.5}, "WarningLimits"), (WarningLimits, "instance of a class")],
    "observers": [
        ("tensorboard", "instances of fedra.server.Observer"),
        ([5], r"observers\[0\]=5; give instances"),
        (Observer, "instances of fedra.server.Observer"),
        (Plotter(folder=Path("x")), r"observers.folder=PosixPath\('x'\); give the path as a text"),
        ([Plotter(), Plotter(folder=print)], "functions and classes cannot be written into a job"),
        (Plotter(folder={"path": "x"}), "has the key 'path'"),
        (Plotter(folder={1: "x"}), "keys that are texts"),
        (Plotter(folder={"a": [1, {2}]}), "objects within lists"),
        (Plotter(folder={1, 2}), "cannot be written as JSON"),
        (Plotter(colours=[Plotter()]), "objects within lists"),
        (Plotter(inner=Plotter(folder=np.float32(1))), r"observers.inner.folder"),
        (Forgetful("x"), "does not keep its parameter 'folder'"),
        (Greedy(a=1), "does not keep its parameter 'options'"),
        (Slotted("x"), "does not keep its parameter 'folder'"),
        (Outer.Inner(), "move it to the top of a module"),
    ],
}  # fmt: skip


@pytest.mark.parametrize(("name", "value", "message"), [(n, v, m) for n, cases in WRONG.items() for v, m in cases])
def test_what_would_be_lost_is_an_error(name: str, value: object, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        RobustAggregator(**{name: value})


def test_an_audit_log_is_given_by_its_path(tmp_path) -> None:
    log = AuditLog(tmp_path / "audit.jsonl")
    with pytest.raises(TypeError, match=r"audit=.*give the path"):
        RobustAggregator(audit=log)
    with pytest.raises(TypeError, match="give the path as a text"):
        RobustAggregator(observers=log)


def test_there_is_no_on_round() -> None:
    with pytest.raises(TypeError, match="on_round"):
        RobustAggregator(on_round=print)


def test_a_clear_error_without_nvflare() -> None:
    code = "import sys; sys.modules['nvflare'] = None\nimport fedra.nvflare"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "fedra.nvflare needs NVFlare; install it with: pip install 'fedra[nvflare]'" in done.stderr
