"""Functions that read outputs from files, and determine the types of the columns."""
