"""The audit trail of a federation: one set of lines a round, and what they say about each client.

Needs neither Flower nor anything else beyond the standard library.
"""

from fedra.audit.log import AuditLog
from fedra.audit.reading import Trail, read_trail
from fedra.audit.rounds import RoundReport
from fedra.audit.summary import LEFT_OUT, ClientSummary, summarise, summary_text

__all__ = ["LEFT_OUT", "AuditLog", "ClientSummary", "RoundReport", "Trail", "read_trail", "summarise", "summary_text"]
