"""Audits in these tests look for generators among the objects of their own test alone."""

import shared_objects

few_objects = shared_objects.few_objects
