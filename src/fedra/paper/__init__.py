"""The one paper that FedRA is from: its published figures, protocols, tables and figures, ours beside them."""

from fedra.paper.protocols import Protocol, Protocols, read_protocols
from fedra.paper.published import DatasetStatistics, Figure, Paper, PublishedAccuracy, read_paper
from fedra.paper.reference import PAPER
from fedra.paper.reproduction import Reproduction
from fedra.paper.tables import paper_tables
from fedra.paper.winners import Agreement, Winner, agreements, winners

__all__ = [
    "PAPER",
    "Agreement",
    "DatasetStatistics",
    "Figure",
    "Paper",
    "Protocol",
    "Protocols",
    "PublishedAccuracy",
    "Reproduction",
    "Winner",
    "agreements",
    "paper_tables",
    "read_paper",
    "read_protocols",
    "winners",
]
