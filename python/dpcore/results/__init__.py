"""Results of an audit: fields and figures, without text, pictures or JSON."""

from .audits import Audit
from .findings import Finding, Scored, Slice
from .guesses import Guesses
from .provenance import Provenance
from .recorded import OutputsAudit

__all__ = ["Audit", "Finding", "Guesses", "OutputsAudit", "Provenance", "Scored", "Slice"]
