"""How much of an estimate to believe, and what speaks against its assumptions."""
