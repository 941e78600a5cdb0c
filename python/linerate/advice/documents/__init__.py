"""Facts from files that a user gives: topologies, finished studies, backup images, and facts of other hosts."""
