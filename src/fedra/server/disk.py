"""What happens when the disk does not take what a round has to write."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Literal, get_args

from fedra import checks

OnDiskError = Literal["stop", "warn"]


class DiskPolicy:
    """Tries to write everything a round has, then says what failed: by a warning, or by the first error.

    "stop" ends the run, but only in `settle`, when all else of the round has been tried; "warn" goes on.
    """

    def __init__(self, on_error: OnDiskError, logger: logging.Logger) -> None:
        self.on_error = checks.choice("on_disk_error", on_error, get_args(OnDiskError))
        self._logger = logger
        self._first: OSError | None = None

    def attempt(self, what: str, write: Callable[[], None]) -> None:
        """Write; an error of the disk is logged, and raised later or never."""
        try:
            write()
        except OSError as error:
            self.note(what, error)

    def note(self, what: str, error: OSError) -> None:
        """Take notice of what the disk did not take."""
        if self.on_error == "warn":
            self._logger.warning("fedra: %s could not be written, the run continues without it: %s", what, error)
        else:
            self._logger.error("fedra: %s could not be written, the run ends with this round: %s", what, error)
            self._first = self._first or error

    def settle(self) -> None:
        """Raise the first error since the last call, where the policy is to stop."""
        error, self._first = self._first, None
        if error is not None:
            raise error
