"""The audit of recorded outputs: of independent runs, or of the canaries of one run."""
