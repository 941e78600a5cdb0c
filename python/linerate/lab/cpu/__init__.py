"""CPUs of the machine that carries a lab: `used` counts their time, `limit` limits it, `idle` keeps them awake."""
