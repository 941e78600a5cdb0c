"""`linerate hosts`: Linerate on load hosts, brought there over SSH, checked, removed. Open `verbs` first."""
