"""Facts of switches, from configurations that were pasted into a file (`show running-config`).

Open `read.py` first: it finds out whose configuration it is. `config.py` cuts it into blocks; a dialect says what the
lines of a port mean. Only the keywords that rules need are taken over: no line of the file is ever shown.
"""
