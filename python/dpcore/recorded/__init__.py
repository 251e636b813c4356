"""Audit of recorded outputs: outputs of independent runs, or canary scores of one run."""
