"""The user-space fabric on real TAP interfaces: what a host's stack sees of the model."""
