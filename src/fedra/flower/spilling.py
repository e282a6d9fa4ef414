"""A grid whose replies go to disk as they arrive, one after the other."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from flwr.app import ArrayRecord, Message
from flwr.serverapp import Grid

from fedra.server.spill import Spill


class SpillingGrid(Grid):
    """Another grid, of which each reply's arrays are put into a file before the next reply is fetched."""

    def __init__(self, grid: Grid, spill: Spill) -> None:
        self._grid, self._spill = grid, spill

    def __getattr__(self, name: str) -> Any:
        """Have all that the other grid has."""
        return getattr(self._grid, name)

    def set_run(self, run: Any) -> None:
        """Set the run of the other grid."""
        self._grid.set_run(run)

    @property
    def run(self) -> Any:
        """The run of the other grid."""
        return self._grid.run

    def create_message(self, *args: Any, **kwargs: Any) -> Message:
        """Make a message as the other grid does."""
        return self._grid.create_message(*args, **kwargs)

    def get_node_ids(self) -> Iterable[int]:
        """Return the nodes of the other grid."""
        return self._grid.get_node_ids()

    def get_nodes(self) -> Iterable[Any]:
        """Return the nodes of the other grid."""
        return self._grid.get_nodes()

    def push_messages(self, messages: Iterable[Message]) -> Iterable[str]:
        """Send messages as the other grid does."""
        return self._grid.push_messages(messages)

    def pull_messages(self, message_ids: Iterable[str]) -> Iterable[Message]:
        """Fetch the replies that are there, each by itself."""
        return [self._put_away(reply) for message in list(message_ids) for reply in self._grid.pull_messages([message])]

    def send_and_receive(self, messages: Iterable[Message], *, timeout: float | None = None) -> Iterable[Message]:
        """Send and wait as the other grid does, with replies fetched as they are here."""
        return type(self._grid).send_and_receive(self, messages, timeout=timeout)

    def _put_away(self, reply: Message) -> Message:
        for record in reply.content.values() if reply.has_content() else ():
            # What a client sent may be anything, and is looked at later.
            if isinstance(record, ArrayRecord):
                arrays = [array for array in record.values() if type(getattr(array, "data", None)) is bytes]
                for array, data in zip(arrays, self._spill.contents([array.data for array in arrays]), strict=True):
                    array.data = data  # type: ignore[assignment]
        return reply
