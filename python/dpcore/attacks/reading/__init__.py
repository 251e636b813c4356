"""Outputs of any kind as parts that scores can read: places, fields, letters, lengths."""
