"""How a result is shown and stored: text, pictures, pages, code, JSON."""
