"""`linerate array`: serves an array, shows it, and manages it while it serves.

Open `verbs` first: the verbs and their options. `reach` finds the array, `picture` draws it, `follow` shows how far
background work is, `serve` is the verb that serves.
"""
