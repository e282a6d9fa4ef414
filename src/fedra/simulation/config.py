"""What a simulated run is: one value, checked before any work starts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from fedra import checks
from fedra.attacks import QuantityAttack, make_attack, make_quantity_attack, quantity_attack_name
from fedra.checks import MOST_WHOLE
from fedra.data import DATASETS, PARTITIONS, default_learning_rate, is_owner_file
from fedra.data.quantities import Lognormal, Stated, parse_quantities, quantities_text
from fedra.models import MODELS
from fedra.names import nearest
from fedra.optimizers import ServerOptimizer, make_optimizer
from fedra.rules import Preceded, Rule, make_preaggregator, make_rule, parse_preaggregator
from fedra.simulation.federation_file import federation_of
from fedra.simulation.holdings import checked_holdings, stated_key
from fedra.simulation.malicious import check_malicious, malicious_text
from fedra.simulation.precedence import overridden
from fedra.simulation.toml import read_toml, toml_text
from fedra.simulation.trust import check_trusted

Setting = Literal["fixed", "dynamic"]
QuantityStatistics = Literal["run", "round"]

# What records, tables and torch can hold; and more threads than any machine has end a process at the system's limit.
_MOST_COUNTED = 2**31 - 1
_MOST_THREADS = 4096

# Where the data lie and how often a run is saved do not change how it ends.
WITHOUT_EFFECT = ("data_dir", "checkpoint_every")

_TEXTS = (
    "dataset",
    "data_dir",
    "partition",
    "model",
    "setting",
    "rule",
    "before",
    "optimizer",
    "attack",
    "quantity_statistics",
    "quantity_attack",
    "quantities",
    "client_key",
)
_TABLES = ("dataset_params", "model_params", "rule_params", "before_params", "optimizer_params", "attack_params")
_COUNTS = {
    **dict.fromkeys(("num_sampled", "rounds", "eval_every", "checkpoint_every", "batch_size"), (1, _MOST_COUNTED)),
    **dict.fromkeys(("num_clients", "max_quantity", "local_epochs", "local_steps"), (1, _MOST_COUNTED)),
    **dict.fromkeys(("seed", "partition_seed"), (0, MOST_WHOLE)),
    "num_malicious": (0, _MOST_COUNTED),
    "threads": (1, _MOST_THREADS),
}
# What may be None: not given.
_OPTIONAL = (
    "data_dir", "before", "model", "max_quantity", "local_epochs", "local_steps", "partition_seed", "lr",
    "quantity_attack", "num_clients", "quantities", "num_malicious", "client_key", "assumed_ratio",
)  # fmt: skip


class RoundTooSmall(ValueError):
    """The rule cannot take rounds of so few clients."""


@dataclass(frozen=True, kw_only=True)
class SimulationConfig:
    """A federation under attack: data, clients, attack, rule, server optimizer, and for how long.

    Attributes:
        dataset: a name of `fedra.data.DATASETS`, or module:function.
        data_dir: where data sets are found; None reads FEDRA_DATA.
        dataset_params: options of the data set's loader.
        partition: "iid", "non-iid", "dirichlet"; "natural", where the data say who holds what; or a .txt or .csv file
            with the client of each training sample, after which a checksum then stands here.
        client_key: by what the data say so, where they can in several ways.
        partition_seed: draws quantities and cuts; None takes the data set's stated seed, or `seed` where it has none.
        dirichlet_alpha: concentration of the label skew.
        num_clients: N; None: as many as the quantities come to.
        quantities: "lognormal sigma=3" (the default), "zipf s=1.2", "equal", numbers separated by commas or as a list,
            or a .txt or .csv file of them, whose numbers then stand here.
        max_quantity: cap on a client's data and quantity together.
        model: a name of `fedra.models.MODELS`, or module:function; None takes the one made for the data.
        model_params: options of the model's builder.
        setting: "fixed" samples ceil(n M / N) malicious clients each round, "dynamic" samples n of N at random.
        num_sampled: n, clients in a round.
        malicious_ratio: M = floor(N * ratio) clients are malicious; stays 0.1 where they are counted or named instead.
        num_malicious: M instead, for federations whose attackers are counted.
        malicious: who they are instead: a list of clients, numbers or names, or "largest 2"; a text then stands here.
        assumed_ratio: the ratio that the rule assumes; None: `malicious_ratio`, 0.1 where they are counted or named.
        rule: a name of `fedra.RULES`, or module:Class.
        rule_params: the rule's parameters.
        before: a name of `fedra.PREAGGREGATORS` to stand before the rule, None for nothing; "bucketing size=4" also
            gives `before_params`.
        before_params: its parameters.
        optimizer: a name of `fedra.optimizers.OPTIMIZERS`.
        optimizer_params: its parameters other than lr.
        lr: the server's learning rate; None takes the data set's.
        attack: a name of `fedra.attacks.ATTACKS`, or module:name.
        attack_params: the attack's parameters.
        alpha_q: malicious clients claim mean + alpha_q std of their true quantities; None: they claim the truth.
        quantity_statistics: mean and std for alpha_q are over all malicious clients, once per "run", or over those that
            are sampled, anew in each "round".
        claimed_quantity: malicious clients claim this number instead.
        quantity_attack: a name of `fedra.attacks.QUANTITY_ATTACKS`; None: what alpha_q or claimed_quantity stand for.
        local_epochs: passes over its data that a client makes by SGD; None with `local_steps` None: one gradient.
        local_steps: SGD steps that a client makes instead.
        local_lr: learning rate of local SGD.
        batch_size: batch of local SGD.
        rounds: how many.
        eval_every: test accuracy every so many rounds, and at the end.
        checkpoint_every: rounds between checkpoints.
        seed: of everything else.
        threads: of the run. Gradients in one pass, evaluation and rules have the same bits with any number; local SGD
            and models that take a pass per client do not, since torch's sums round differently: so it is a setting.
    """

    dataset: str = "digits"
    data_dir: str | Path | None = None
    dataset_params: Mapping[str, Any] = field(default_factory=dict)
    partition: str = "iid"
    client_key: str | None = None
    partition_seed: int | None = None
    dirichlet_alpha: float = 0.5
    num_clients: int | None = None
    quantities: str | None = None
    max_quantity: int | None = None
    model: str | None = None
    model_params: Mapping[str, Any] = field(default_factory=dict)
    setting: Setting = "dynamic"
    num_sampled: int = 50
    malicious_ratio: float = 0.1
    num_malicious: int | None = None
    malicious: Any = None
    assumed_ratio: float | None = None
    rule: str = "fedra"
    rule_params: Mapping[str, Any] = field(default_factory=dict)
    before: str | None = None
    before_params: Mapping[str, Any] = field(default_factory=dict)
    optimizer: str = "adam"
    optimizer_params: Mapping[str, Any] = field(default_factory=dict)
    lr: float | None = None
    attack: str = "none"
    attack_params: Mapping[str, Any] = field(default_factory=dict)
    alpha_q: float | None = None
    quantity_statistics: QuantityStatistics = "run"
    claimed_quantity: float | None = None
    quantity_attack: str | None = None
    local_epochs: int | None = None
    local_steps: int | None = None
    local_lr: float = 0.01
    batch_size: int = 32
    rounds: int = 100
    eval_every: int = 25
    checkpoint_every: int = 25
    seed: int = 0
    threads: int = 1

    def __post_init__(self) -> None:
        if isinstance(self.data_dir, Path):
            object.__setattr__(self, "data_dir", str(self.data_dir))
        if self.quantities is not None:
            object.__setattr__(self, "quantities", quantities_text(self.quantities))
        for name in _TEXTS:
            if getattr(self, name) is not None or name not in _OPTIONAL:
                checks.text(name, getattr(self, name))
        for name in _TABLES:
            checks.table(name, getattr(self, name))
        if self.dataset not in DATASETS and ":" not in self.dataset:
            shown = checks.display_value(self.dataset)
            raise ValueError(f"unknown dataset {shown}{nearest(self.dataset, DATASETS)}, or module:function")
        if self.model is not None and self.model not in MODELS and ":" not in self.model:
            raise ValueError(f"unknown model {self.model!r}{nearest(self.model, MODELS)}, or module:function")
        checks.choice("setting", self.setting, get_args(Setting))
        checks.choice("quantity_statistics", self.quantity_statistics, get_args(QuantityStatistics))
        for name in ("malicious_ratio", "assumed_ratio"):
            if getattr(self, name) is not None or name not in _OPTIONAL:
                # Zero has one sign, and 0 is 0.0: a run has one form.
                object.__setattr__(self, name, checks.ratio(getattr(self, name), name) + 0.0)
        for name, (least, most) in _COUNTS.items():
            if getattr(self, name) is not None or name not in _OPTIONAL:
                checks.whole(name, getattr(self, name), least, most)
        for name in ("lr", "local_lr", "dirichlet_alpha"):
            if getattr(self, name) is not None or name not in _OPTIONAL:
                checks.number(name, getattr(self, name), above=0)
        object.__setattr__(self, "dirichlet_alpha", float(self.dirichlet_alpha))
        checks.at_most_one(local_epochs=self.local_epochs, local_steps=self.local_steps)
        checks.at_most_one(alpha_q=self.alpha_q, claimed_quantity=self.claimed_quantity)
        for name, least in (("alpha_q", 0), ("claimed_quantity", 1)):
            if getattr(self, name) is not None:
                checks.number(name, getattr(self, name), least=least)
        if "lr" in self.optimizer_params:
            raise ValueError(f"optimizer_params has lr={self.optimizer_params['lr']!r}; give it as the setting lr")
        if "before" in self.rule_params:
            raise ValueError(f"rule_params has before={self.rule_params['before']!r}; give it as the setting before")
        self._take_before_apart()
        object.__setattr__(self, "partition", checked_holdings(self))
        object.__setattr__(self, "client_key", stated_key(self))
        self._take_malicious()
        num_clients = self._take_quantities()
        make_attack(self.attack, **self.attack_params)
        self.make_quantity_attack()
        self.make_optimizer()
        for known in dict.fromkeys((None, num_clients)):
            self.check_rule(self.make_rule(num_clients=known))

    def _take_before_apart(self) -> None:
        """Move parameters in the text of `before` to `before_params`, so that a run has one form."""
        if self.before is None:
            if self.before_params:
                raise ValueError(f"before_params={dict(self.before_params)!r} without before; name a pre-aggregator")
            return
        name, parameters = parse_preaggregator(self.before)
        if parameters and self.before_params:
            raise ValueError(f"before={self.before!r} has parameters, and so has before_params; give one of them")
        object.__setattr__(self, "before", name)
        object.__setattr__(self, "before_params", parameters or self.before_params)

    def _take_malicious(self) -> None:
        """Write who is malicious in its one form, and raise where it is said in two ways."""
        checks.at_most_one(malicious=self.malicious, num_malicious=self.num_malicious)
        if self.malicious is not None:
            numbered = self.partition in PARTITIONS
            object.__setattr__(self, "malicious", malicious_text(self.malicious, numbered=numbered))
        counted = "num_malicious" if self.malicious is None else "malicious"
        ratio, stated = self.malicious_ratio, getattr(self, counted)
        if stated is not None and ratio != SimulationConfig.malicious_ratio:
            raise ValueError(
                f"malicious_ratio={ratio:g} and {counted}={checks.display_value(stated)} say in two ways who is "
                f"malicious; give one of them, and if {ratio:g} is what the rule shall assume, assumed_ratio={ratio:g}"
            )

    def _take_quantities(self) -> int | None:
        """Write the law of the quantities in its one form, the numbers of a file included: a run is all in here.

        Return N where it is known without the data.
        """
        number = self.num_clients
        if self.quantities is not None:
            law = parse_quantities(self.quantities)
            object.__setattr__(self, "quantities", law.text)
            number = law.number(number)
            if isinstance(law, Stated):
                object.__setattr__(self, "num_clients", None)
        if number is not None:
            self.check_clients(number)
            if self.partition in PARTITIONS:
                check_malicious(self.malicious, number)
        return number

    def check_clients(self, num_clients: int, where: str = "") -> None:
        """Raise where a federation of N clients is too small for what is asked of it; `where` is which one it is."""
        if self.num_sampled > num_clients:
            raise ValueError(
                f"num_sampled={self.num_sampled} but the federation has only {num_clients} clients{where}; sample fewer"
            )
        if self.num_malicious is not None and self.num_malicious > num_clients:
            raise ValueError(
                f"num_malicious={self.num_malicious} but the federation has only {num_clients} clients{where}; give at "
                "most as many"
            )

    @property
    def attacked(self) -> bool:
        """Whether malicious clients do anything that honest ones would not."""
        return self.attack != "none" or self.make_quantity_attack().name != "honest"

    @property
    def partition_name(self) -> str:
        """What the partition is called where a file's path and checksum have no place."""
        return "file" if is_owner_file(self.partition) else self.partition

    @property
    def short_name(self) -> str:
        """What sets this run apart from others, in a few words that can be part of a file's name."""
        rule = self.rule if self.before is None else f"{self.before}-{self.rule}"
        name = f"{self.dataset}-{self.partition_name}-{rule}-{self.attack}-seed{self.seed}"
        return name.replace(":", ".")

    @property
    def told_ratio(self) -> float:
        """The ratio of malicious clients that the rule is told, unless `rule_params` state one."""
        return self.malicious_ratio if self.assumed_ratio is None else self.assumed_ratio

    @property
    def learning_rate(self) -> float:
        """The server's learning rate, as given or the data set's."""
        return default_learning_rate(self.dataset) if self.lr is None else float(self.lr)

    def make_quantity_attack(self) -> QuantityAttack:
        """Return the quantity attack."""
        return make_quantity_attack(self.quantity_attack, **self._quantity_settings)

    @property
    def stated_quantity_attack(self) -> str | None:
        """The quantity attack where it is another than alpha_q and claimed_quantity stand for; else None."""
        return None if self.quantity_attack == quantity_attack_name(**self._quantity_settings) else self.quantity_attack

    @property
    def unstated_of_federation(self) -> list[str]:
        """Those settings of the federation that are as if they had not been given: the paper's federation."""
        usual = {
            "num_clients": self.num_clients is None,
            "quantities": self.quantities in (None, Lognormal().text),
            "num_malicious": self.num_malicious is None,
            "assumed_ratio": self.assumed_ratio in (None, self.malicious_ratio),
            "client_key": self.client_key is None,
            "malicious": self.malicious is None,
        }
        return [name for name, is_usual in usual.items() if is_usual]

    @property
    def _quantity_settings(self) -> dict[str, float | None]:
        return {"alpha_q": self.alpha_q, "claimed_quantity": self.claimed_quantity}

    def make_optimizer(self) -> ServerOptimizer:
        """Return the server optimizer."""
        return make_optimizer(self.optimizer, lr=self.learning_rate, **self.optimizer_params)

    def make_rule(self, num_clients: int | None) -> Rule:
        """Return the rule for this federation; what `rule_params` states counts for more."""
        known: dict[str, Any] = {
            "num_clients": num_clients,
            "malicious_ratio": self.told_ratio,
            "setting": self.setting,
        }
        known.update((name, value) for name, value in self.rule_params.items() if name in known)
        rule = make_rule(self.rule, **self.rule_params).for_federation(**known)
        if self.before is None:
            return rule
        before = make_preaggregator(self.before, **self.before_params)
        return Preceded(rule=rule, before=before, malicious_ratio=known["malicious_ratio"], seed=self.seed)

    def check_rule(self, rule: Rule) -> None:
        """Raise where the rule cannot take rounds of this size."""
        if refusal := rule.refusal(self.num_sampled):
            raise RoundTooSmall(refusal)

    def to_dict(self) -> dict[str, Any]:
        """Return the configuration as plain values."""
        return {key: _plain(value) for key, value in asdict(self).items()}

    def differences(self, values: Any) -> Iterator[tuple[str, Any, Any]]:
        """Yield the settings that plain values have otherwise: name, ours, theirs; what they leave out is a default."""
        stated = values if isinstance(values, Mapping) else {"settings": values}
        ours = self.to_dict()
        for known in fields(self):
            default = {} if known.name.endswith("_params") else known.default
            theirs = stated.get(known.name, default)
            if known.name == "malicious":
                theirs = _in_one_form(theirs)
            same = theirs == ours[known.name] and isinstance(theirs, bool) == isinstance(ours[known.name], bool)
            if known.name not in WITHOUT_EFFECT and not same:
                yield known.name, ours[known.name], theirs
        yield from ((name, "none", stated[name]) for name in stated if name not in ours)

    @classmethod
    def read(cls, path: Path, *, trust: bool = False) -> SimulationConfig:
        """Read a configuration from a TOML file; a federation that it has or names gives what it leaves out.

        Args:
            path: the file.
            trust: whether code that it names as module:name may be imported; else that is an error.
        """
        values = read_toml(path)
        if (own := values.pop("federation", None)) is not None:
            described = federation_of(own, path, trust=trust)
            described.pop("name", None)
            values = overridden(described, values)
        if not trust:
            check_trusted(values, path)
        return cls.from_dict(values)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> SimulationConfig:
        """Make a configuration from plain values; unknown keys raise, with the nearest valid one.

        The values are taken for the caller's own: code that they name is imported. See `check_trusted` for others.
        """
        valid = [known.name for known in fields(cls)]
        for key in values:
            if key not in valid:
                raise ValueError(f"unknown setting {key!r}{nearest(key, valid)}")
        return cls(**values)


def _in_one_form(malicious: Any) -> Any:
    """Return who is malicious as `malicious_text` writes it, or as it is where that is not possible."""
    try:
        return malicious_text(malicious)
    except (ValueError, TypeError):
        return malicious


def _plain(value: Any) -> Any:
    """Return NumPy's numbers as Python's, which is what TOML and JSON know."""
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    return value.item() if isinstance(value, np.generic) else value


def to_toml(config: SimulationConfig) -> str:
    """Return the configuration as TOML."""
    return toml_text(config.to_dict())
