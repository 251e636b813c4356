"""Outputs as rows of tokens, and what each token says."""

__all__: list[str] = []
