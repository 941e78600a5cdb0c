"""The speed bars: whole processes, each on a core of its own, compared with the raw TCP limit and with peers."""
