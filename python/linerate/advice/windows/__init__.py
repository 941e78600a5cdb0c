"""Facts of a Windows host: `facts.ps1` collects them there as JSON, `read.py` reads that. Nothing is changed there."""
