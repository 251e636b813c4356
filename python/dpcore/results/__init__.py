"""Results of an audit: fields and figures. Text, pictures and JSON are in other modules."""

from .audits import Audit
from .evidence import Finding, Provenance, Scored
from .evidence import Slice as Slice
from .guesses import Guesses
from .outputs_audits import OutputsAudit

__all__ = ["Audit", "Finding", "Guesses", "OutputsAudit", "Provenance", "Scored"]
