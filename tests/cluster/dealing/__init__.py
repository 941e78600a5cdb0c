"""What the hosts of a workload file get."""
