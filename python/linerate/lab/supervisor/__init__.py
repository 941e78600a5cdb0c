"""The supervisor is the process that holds a lab. When it ends, the lab is gone.

Open this file first, then `build`. `__main__` reads its order (name, topology, fabric) from standard input, builds and
answers with one line. An attached supervisor then serves until that input closes, a detached one until `down`.

    build      the whole lab from an order, in the order of the steps
    nodes      network namespaces, held open by descriptors, and what is set in every one of them
    control    the network that joins all nodes and the machine running the study, apart from the SAN
    addresses  addresses and routes of the SAN's interfaces
    arrays     the array processes, each inside its namespace
    serve      the loop that waits for commands, signals and the end
    service    what a command may ask, and the answers
    counters   what a measurement wants to know of every node
    napi       CPU time of the kernel's receive threads

It runs one thread but for the start of the arrays, and visits a namespace to work in it.
"""
