"""The rows that estimators see: pooled, scaled, searched, and resampled."""
