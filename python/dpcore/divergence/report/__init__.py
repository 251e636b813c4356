"""Reports of an estimate: text and pictures."""
