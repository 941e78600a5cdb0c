"""The web page and /metrics: over HTTP, in a browser, and against the figures of the directories that they read."""
