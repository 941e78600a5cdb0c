"""The kernel as one network namespace shows it."""


class Kernel:
    """Sockets and files of one network namespace."""
