"""Claims of several kinds: Gaussian DP, zCDP, Renyi DP, trade-off curves, accountants.

An object of this package is a claim about all neighbouring inputs, in both orders. Each claim is a
curve: it gives, for every type I error, the least type II error of any test between the two inputs.
"""

from .renyi import RDP, ZCDP, of
from .trade_off import GDP, Claim, TradeOff

__all__ = ["GDP", "RDP", "ZCDP", "Claim", "TradeOff", "of"]


def __dir__() -> list[str]:
    """Return the public names, without the imported ones."""
    return [*__all__]
