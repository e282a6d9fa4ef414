"""A server and its rounds without any platform: replies are NumPy arrays."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import numpy as np

from fedra.server.core import Server
from fedra.server.form import model_form, view_array
from fedra.server.layout import Layout
from fedra.server.replies import Reply, read_all
from fedra.server.step import ServerStep

LOGGER = logging.getLogger("tests.server")
MODEL = {
    "w": np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3),
    "steps": np.asarray(7),
    "b": np.ones(2, np.float32),
}
FORM = model_form({name: (array.dtype, array.shape) for name, array in MODEL.items()})


class Platform:
    """The least that a platform does around `Server`."""

    def __init__(self, *, optimizer="sgd", **options) -> None:
        self.step = ServerStep(optimizer, owner="Platform")
        self.server = Server(platform="tests", memory=self.step, logger=LOGGER, **{"rule": "fedavg", **options})
        self.model = MODEL

    def begin(self, **options):
        saved = self.server.begin(FORM, **options)
        self.model = MODEL if saved is None else saved.arrays
        return saved

    def play(self, number: int, replies: list[Reply]):
        """Play one round; the record."""
        self.server.ask(FORM, {reply.client for reply in replies}, known=len(replies), run="r1")
        weights = FORM.flat(FORM.read(self.model, view_array))
        _, trained, record = self.server.aggregate(self.step, number, replies, weights=weights)
        if trained is not None:
            self.model = {**self.model, **trained}
        self.server.save(number, lambda: self.model)
        self.server.publish(record)
        return record

    def run(self, rounds: int, **options) -> dict[str, np.ndarray]:
        """Go on to this many rounds in all, with clients that depend on their number and the round alone."""
        self.begin(rounds=rounds)
        for number in range(self.server.done + 1, rounds + 1):
            self.play(number, honest(self.model, number, **options))
        self.server.end()
        return self.model


def client_reply(client, arrays, claim: float = 20) -> Reply:
    return Reply(client=client, message=arrays, claim=claim)


def read(replies: list[Reply]) -> list[Reply]:
    def fill(reply: Reply) -> None:
        reply.views = FORM.read(reply.message, view_array)

    return read_all(replies, fill, None, Layout())


def honest(model, number: int, clients: Sequence[int] = range(1, 8)) -> list[Reply]:
    """Replies a little further than the model, in a common direction."""
    replies = []
    for client in clients:
        rng = np.random.default_rng(1000 * number + client)
        arrays = {
            name: np.asarray(array + 0.01 + 0.001 * rng.standard_normal(array.shape), dtype=array.dtype)
            if array.dtype.kind == "f"
            else array
            for name, array in model.items()
        }
        replies.append(client_reply(client, arrays, 10 + client))
    return read(replies)
