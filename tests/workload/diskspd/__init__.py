"""The reader of commands of diskspd and sqlio."""
