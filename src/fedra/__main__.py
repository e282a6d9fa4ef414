"""``python -m fedra``, and the `fedra` command."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line; say what to install where its libraries are missing."""
    try:
        from fedra.cli import app
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] == "fedra":
            raise
        sys.exit(f"fedra's command line needs {error.name!r}: pip install 'fedra[simulation]'")
    app()


if __name__ == "__main__":
    main()
