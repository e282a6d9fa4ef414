"""The one exception of the data package."""


class DatasetError(ValueError):
    """Data that are missing, corrupt or malformed; the message names the file and the remedy."""
