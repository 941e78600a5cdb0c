"""The virtual SAN: hosts, switches and arrays in namespaces of this machine."""
