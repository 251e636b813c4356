"""Doctests of what needs an optional package are collected where it is installed."""

from importlib.util import find_spec

collect_ignore = [] if find_spec("torch") else ["dpcore/torch"]
