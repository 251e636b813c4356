"""Steps of an audit: request, pair, event, count, certificate."""
