"""What is known about models and the endpoints that serve them, as data."""
