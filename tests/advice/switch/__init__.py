"""Configurations of switches."""
