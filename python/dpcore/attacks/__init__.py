"""Attacks: from pilot outputs to the event that an audit then counts on fresh draws."""

from .majority import MajorityVote, choose

__all__ = ["MajorityVote", "choose"]
