"""What an audit found: fields and figures, without text, pictures or JSON."""
