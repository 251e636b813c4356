"""Results of audits: their fields, reported numbers, texts, pictures, pages and JSON."""

from .audits import Audit
from .evidence import Finding, Provenance, Scored
from .evidence import Slice as Slice
from .guesses import Guesses
from .outputs_audits import OutputsAudit

__all__ = ["Audit", "Finding", "Guesses", "OutputsAudit", "Provenance", "Scored"]
