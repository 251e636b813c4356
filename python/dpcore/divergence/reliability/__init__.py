"""Belief in an estimate, and what speaks against its assumptions."""
