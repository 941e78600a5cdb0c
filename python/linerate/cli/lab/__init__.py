"""`linerate lab`: a virtual SAN out of network namespaces, brought up, looked at, changed and taken down.

Open `verbs` first: a function per verb. `faults` pulls cables and lets other things fail, `address` gives and takes
addresses.
"""
