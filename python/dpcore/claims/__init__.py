"""Claims in every currency: Gaussian DP, zCDP, Renyi DP, trade-off curves, accountants.

An object of this package stands for a promise about all neighbouring inputs, in both orders. Each
is a curve: the least type II error of any test between the two inputs at every type I error.
"""

from .renyi import RDP, ZCDP, of
from .trade_off import GDP, Claim, TradeOff

__all__ = ["GDP", "RDP", "ZCDP", "Claim", "TradeOff", "of"]


def __dir__() -> list[str]:
    """Return its public names; what it imports is not shown."""
    return [*__all__]
