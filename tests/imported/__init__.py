"""Results of other tools: files in the form of each tool, and what is read from them."""
