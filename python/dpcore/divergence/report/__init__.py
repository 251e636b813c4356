"""How an estimate is shown: text and pictures."""
