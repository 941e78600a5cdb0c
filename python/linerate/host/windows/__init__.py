"""Windows: the same settings as PowerShell that an administrator reads and runs; nothing is run from here."""
