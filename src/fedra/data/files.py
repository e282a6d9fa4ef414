"""Reading files with errors that name the file and the remedy."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path

from fedra.data.errors import DatasetError


def read_bytes(path: Path, remedy: str) -> bytes:
    """The content of a file, unpacked where its name ends in .gz."""
    if path.exists() and not path.is_file():
        raise DatasetError(f"{path}: is no file; {remedy}")
    try:
        if path.suffix == ".gz":
            with gzip.open(path) as stream:
                return stream.read()
        return path.read_bytes()
    except FileNotFoundError as error:
        raise DatasetError(f"{path}: no such file; {remedy}") from error
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise DatasetError(f"{path}: corrupt or truncated gzip file ({error}); {remedy}") from error
    except OSError as error:
        raise DatasetError(f"{path}: cannot be read ({error.strerror or error}); check its permissions") from error


def get_command(name: str, data_dir: Path | None) -> str:
    """The remedy for a data set that can be downloaded."""
    return f"get it with: fedra data get {name} --data-dir {data_dir or 'DIR'}"
