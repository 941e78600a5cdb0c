"""Tests of `linerate tune`."""
