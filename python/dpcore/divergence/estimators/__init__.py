"""One estimator a file: rows in, divergences at every order out."""
