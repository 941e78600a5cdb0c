"""Jobs with filecreate, filestat and filedelete."""
