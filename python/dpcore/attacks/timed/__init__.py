"""Scores that read how long a call took beside its output."""
