"""Linux: reads and turns settings through netlink, ethtool netlink and sysctl files, inside any network
namespace.

Open `knob` first: what every knob can do. `kernel` holds the sockets and files of one namespace.
`tcp_sockets` asks for its TCP connections, `counters` for the counters of a driver.
"""
