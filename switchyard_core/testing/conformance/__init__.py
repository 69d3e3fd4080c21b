"""Contracts as test classes: inherit one, name what is yours, and pytest runs its tests."""
