"""Linerate measures an IP storage network, finds the settings that bring it to line rate, and says how sure that is."""
