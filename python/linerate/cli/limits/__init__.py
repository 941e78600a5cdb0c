"""`linerate probe` and `linerate scale`: what limits one path, and how far a load can grow."""
