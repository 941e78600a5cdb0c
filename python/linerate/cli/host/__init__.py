"""`linerate host`: show, plan, apply and restore a host's settings.

Open `verbs` first: a function per verb. `show` writes settings for people and programs.
"""
