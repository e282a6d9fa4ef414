"""A federation that was described, looked at before anything is run: sizes, labels, and what a liar could claim."""

from fedra.federations.description import Claim, FederationDescription, describe
from fedra.federations.picture import PICTURE_FORMATS, write_picture
from fedra.federations.text import description_text

__all__ = [
    "PICTURE_FORMATS",
    "Claim",
    "FederationDescription",
    "describe",
    "description_text",
    "write_picture",
]
