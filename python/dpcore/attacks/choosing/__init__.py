"""Which threshold on which score an attack counts, and how finely outputs are rounded."""
