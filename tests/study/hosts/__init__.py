"""Studies of hosts that exist: this machine, hosts elsewhere, or both."""
