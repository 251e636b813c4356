"""Scores that attacks learn from pilot draws: functions of an output, higher for x."""
