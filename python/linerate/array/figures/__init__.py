"""Figures made of an array's reports: `rates` between two of them, `metrics` of one for Prometheus."""
