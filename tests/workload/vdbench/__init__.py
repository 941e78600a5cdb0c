"""The reader of vdbench parameter files, by subject."""
