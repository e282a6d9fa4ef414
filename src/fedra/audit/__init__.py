"""The audit trail of a federation: one set of lines a round, and what they say about each client.

Needs neither Flower nor anything else beyond the standard library.
"""

from fedra.audit.log import AuditLog, AuditTarget, with_audit
from fedra.audit.reading import Trail, read_trail
from fedra.audit.summary import ClientSummary, summarise, summary_text

__all__ = [
    "AuditLog",
    "AuditTarget",
    "ClientSummary",
    "Trail",
    "read_trail",
    "summarise",
    "summary_text",
    "with_audit",
]
