"""A virtual machine as a stranger's host: Debian's kernel, userland and tools, in `make test-vm`.

`__main__` is what `make test-vm` calls: it sets up what is needed and runs the tests in namespaces of their own.
`debian.sh` and `image` make the system, `network` connects it, `machine` runs it, `stranger` is the host that tests
use.
"""
