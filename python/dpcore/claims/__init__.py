"""Claims that an audit can test: Gaussian DP, zCDP, Renyi DP, trade-off curves, accountants.

A claim object states a privacy guarantee for every pair of neighbouring inputs, in both orders.
Each claim is a trade-off curve. Consider all tests that decide between the two inputs from an
output. For every type I error, the curve gives the least type II error of these tests.
"""

from .renyi import RDP, ZCDP, of
from .trade_off import GDP, Claim, TradeOff

__all__ = ["GDP", "RDP", "ZCDP", "Claim", "TradeOff", "of"]


def __dir__() -> list[str]:
    """Return the public names of the package, without the other imported names."""
    return [*__all__]
