"""Display and storage of results: text, pictures, pages, code, JSON."""
