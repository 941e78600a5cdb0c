"""Settings of SMB sessions, for volumes that are files on shares. The server agrees to them at logon, per run."""

from __future__ import annotations

from linerate.setting import Choice, Number, OnOff
from linerate.settings.san_setting import ModelField, SanSetting
from linerate.workload.spec import SMB_CHANNELS_MAX, SMB_IO_BYTES_MAX, SMB_IO_BYTES_MIN

PREFIX = "smb."
SMB_TRANSPORT = f"{PREFIX}transport"

SETTINGS = (
    SanSetting(
        name=f"{PREFIX}signing",
        title="SMB signing",
        applier="load",
        kind=Choice(("auto", "on", "off")),
        default="auto",
        field=ModelField("smb", "signing"),
        elsewhere=(
            ("Windows", "Set-SmbClientConfiguration -RequireSecuritySignature"),
            ("Samba", "client signing"),
        ),
        doc="""Each message has a signature, which both sides compute over all of its data (MS-SMB2 3.1.4.1). It costs
        CPU time in proportion to throughput. auto signs if the server requires it; with off such a server fails the
        run. Encrypted messages have no signature.""",
    ),
    SanSetting(
        name=f"{PREFIX}encryption",
        title="SMB encryption",
        applier="load",
        kind=Choice(("auto", "off", "on", "aes-128-gcm", "aes-128-ccm", "aes-256-gcm", "aes-256-ccm")),
        default="auto",
        field=ModelField("smb", "encryption"),
        elsewhere=(("Windows", "Set-SmbShare -EncryptData"), ("Samba", "smb encrypt")),
        doc="""All messages are encrypted: on takes the cipher that the server prefers, a cipher's name takes that one.
        auto encrypts if the server or the share requires it. It needs dialect 3.0 or later, and dialect 3.1.1 for the
        choice of a cipher.""",
    ),
    SanSetting(
        name=f"{PREFIX}dialect",
        title="SMB dialect",
        applier="load",
        kind=Choice(("2.1", "3.0", "3.0.2", "3.1.1")),
        default="the latest",
        field=ModelField("smb", "dialect"),
        elsewhere=(("Windows", "Smb2DialectMin, Smb2DialectMax"), ("Samba", "client max protocol")),
        doc="""The only dialect that is offered to the server. Without it all are, and the server takes the latest of
        them. Later dialects have faster signatures, 3.1.1 protects the logon itself.""",
    ),
    SanSetting(
        name=f"{PREFIX}max_io",
        title="Longest SMB request",
        applier="load",
        kind=Number("bytes", SMB_IO_BYTES_MIN, SMB_IO_BYTES_MAX),
        default="the server's",
        field=ModelField("smb", "max_io"),
        elsewhere=(("Linux", "rsize, wsize"), ("Samba", "smb2 max read, smb2 max write")),
        doc="""The longest READ and WRITE. A longer I/O, or one longer than the server permits, is split into several
        requests that are in flight together. It counts as one I/O that ends with its last request, and fails if one
        of them fails. What is used is in the facts of a run: max_io_bytes.""",
    ),
    SanSetting(
        name=f"{PREFIX}channels",
        title="SMB channels",
        applier="load",
        kind=Number("connections", 1, SMB_CHANNELS_MAX),
        default="1",
        field=ModelField("smb", "channels"),
        elsewhere=(
            ("Windows", "Set-SmbClientConfiguration -ConnectionCountPerRssNetworkInterface"),
            ("Linux", "max_channels"),
            ("Samba", "server multi channel support"),
        ),
        doc="""Connections of the session of each file (multichannel, dialect 3.0 or later), all to the address of the
        URL. Requests take each in turn. If one is lost, the others do its requests. A server without multichannel fails
        the run. Credits are per connection.""",
    ),
    SanSetting(
        name=f"{PREFIX}durable",
        title="SMB durable handles",
        applier="load",
        kind=OnOff(),
        default="on",
        field=ModelField("smb", "durable"),
        elsewhere=(("Samba", "durable handles"),),
        doc="""The server is asked to keep the file open when the connection is lost, so that the next connection claims
        it back. It needs an oplock, which ends when another client opens the file. Without it, or if the server does
        not agree, the file is opened again. What was granted is in the facts of a run: durable_handle.""",
    ),
    SanSetting(
        name=SMB_TRANSPORT,
        title="SMB transport",
        applier="load",
        kind=Choice(("tcp", "rdma")),
        default="tcp",
        elsewhere=(("Linux", "mount.cifs -o rdma"), ("Windows", "Enable-NetAdapterRdma")),
        doc="""rdma is SMB Direct (MS-SMBD). A case with it is not applicable, with the reason: Linerate's own client
        has TCP alone, and RDMA in software says nothing about an adapter. On a machine with such an adapter, mount
        the share with it and load a file there.""",
    ),
)
