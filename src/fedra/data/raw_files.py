"""Reading the files of data sets, with errors that name the file and the remedy."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path

from fedra.data.dataset import DatasetError
from fedra.untrusted import opened

# Ten times what the largest of the data sets has.
MOST_BYTES = 2**30


def read_bytes(path: Path, remedy: str) -> bytes:
    """The content of a file, unpacked where its name ends in .gz; at most 1 GiB."""
    try:
        with opened(path) as file, gzip.open(file) if path.suffix == ".gz" else file as stream:
            content = stream.read(MOST_BYTES + 1)
    except FileNotFoundError as error:
        raise DatasetError(f"{path}: no such file; {remedy}") from error
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise DatasetError(f"{path}: corrupt or truncated gzip file ({error}); {remedy}") from error
    except OSError as error:
        raise DatasetError(f"{path}: cannot be read ({error.strerror or error}); check its permissions") from error
    except ValueError as error:
        raise DatasetError(f"{error}; {remedy}") from error
    if len(content) > MOST_BYTES:
        raise DatasetError(f"{path}: holds more than {MOST_BYTES:,} bytes; {remedy}")
    return content
