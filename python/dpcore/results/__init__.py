"""Results of an audit: fields and figures, without text, pictures or JSON."""

from .audits import Audit
from .evidence import Finding, Provenance, Scored
from .evidence import Slice as Slice
from .outputs_audits import Guesses, OutputsAudit

__all__ = ["Audit", "Finding", "Guesses", "OutputsAudit", "Provenance", "Scored"]
