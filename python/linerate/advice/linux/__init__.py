"""Facts of a Linux host. Open `read.py` first; `source.py` is all that touches the host, and it only reads."""
