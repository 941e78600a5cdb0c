//! System calls: the driver trait, its io_uring and epoll drivers, shared memory, files, clocks.
