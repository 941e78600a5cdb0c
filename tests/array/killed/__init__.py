"""Arrays on files that are killed under load, as a power cut would end them."""
