"""Settings shared by all tests."""

from hypothesis import settings

# A deadline would measure the machine and the first import of scipy, not the code.
settings.register_profile("dpcore", deadline=None)
settings.load_profile("dpcore")
