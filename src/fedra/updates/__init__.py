"""Updates that are files, larger than memory if need be: every rule reads them in parts, to the same bits."""

from fedra.updates.update_files import UpdateFiles, open_updates

__all__ = ["UpdateFiles", "open_updates"]
