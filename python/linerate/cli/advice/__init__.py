"""`linerate advise`: `verb` is the verb, `apply` what it does with --apply."""
