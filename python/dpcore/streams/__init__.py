"""Random streams: seeds, purposes, blocks, and the global generators of other packages."""
