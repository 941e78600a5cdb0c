//! An array for Python: start, look, stop.
