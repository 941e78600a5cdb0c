# Puts back what was saved before the change. Run as administrator, on the host itself.
#requires -RunAsAdministrator
$ErrorActionPreference = 'Stop'
$Ports = @('SAN 1', 'O''Neil')
$SavedFile = Join-Path $PSScriptRoot 'linerate-saved.xml'
function Get-InterfaceKey($Port) {
    'HKLM:\SYSTEM\CurrentControlSet\Services\Tcpip\Parameters\Interfaces\' + (Get-NetAdapter -Name $Port).InterfaceGuid
}
function Get-InitiatorKey {
    Get-ChildItem 'HKLM:\SYSTEM\CurrentControlSet\Control\Class\{4D36E97B-E325-11CE-BFC1-08002BE10318}' -ErrorAction SilentlyContinue |
        Where-Object { $_.GetValue('DriverDesc') -eq 'Microsoft iSCSI Initiator' } |
        ForEach-Object { Join-Path $_.PSPath 'Parameters' }
}
$Saved = Import-Clixml -Path $SavedFile

# Largest data segment
Set-ItemProperty -Path (Get-InitiatorKey) -Name MaxRecvDataSegmentLength -Type DWord -Value $Saved['initiator|MaxRecvDataSegmentLength']

# Largest burst
Set-ItemProperty -Path (Get-InitiatorKey) -Name MaxBurstLength -Type DWord -Value $Saved['initiator|MaxBurstLength']

# First burst
Set-ItemProperty -Path (Get-InitiatorKey) -Name FirstBurstLength -Type DWord -Value $Saved['initiator|FirstBurstLength']

# Initial R2T
Set-ItemProperty -Path (Get-InitiatorKey) -Name InitialR2T -Type DWord -Value $Saved['initiator|InitialR2T']

# Immediate data
Set-ItemProperty -Path (Get-InitiatorKey) -Name ImmediateData -Type DWord -Value $Saved['initiator|ImmediateData']

# Nagle's algorithm
foreach ($Port in $Ports) {
    if ($null -ne $Saved["interface|$Port|TcpNoDelay"]) { Set-ItemProperty -Path (Get-InterfaceKey $Port) -Name TcpNoDelay -Type DWord -Value $Saved["interface|$Port|TcpNoDelay"] } else { Remove-ItemProperty -Path (Get-InterfaceKey $Port) -Name TcpNoDelay -ErrorAction SilentlyContinue }
}

# Shortest retransmission timeout
Set-NetTCPSetting -SettingName DatacenterCustom -MinRtoMs $Saved['tcp|MinRtoMs']

# Congestion notification (ECN)
Set-NetTCPSetting -SettingName DatacenterCustom -EcnCapability $Saved['tcp|EcnCapability']

# Congestion control
Set-NetTCPSetting -SettingName DatacenterCustom -CongestionProvider $Saved['tcp|CongestionProvider']

# Delayed ACK
Set-NetTCPSetting -SettingName DatacenterCustom -DelayedAckFrequency $Saved['tcp|DelayedAckFrequency']

# Receive-window auto-tuning
Set-NetTCPSetting -SettingName DatacenterCustom -AutoTuningLevelLocal $Saved['tcp|AutoTuningLevelLocal']

# TCP offload engine
foreach ($Port in $Ports) {
    Set-NetAdapterAdvancedProperty -Name $Port -RegistryKeyword '*TCPConnectionOffloadIPv4' -RegistryValue $Saved["property|$Port|*TCPConnectionOffloadIPv4"]
    Set-NetAdapterAdvancedProperty -Name $Port -RegistryKeyword '*TCPConnectionOffloadIPv6' -RegistryValue $Saved["property|$Port|*TCPConnectionOffloadIPv6"]
}
Set-NetOffloadGlobalSetting -Chimney $Saved['offload|Chimney']

# RSS load balancing profile
foreach ($Port in $Ports) {
    Set-NetAdapterRss -Name $Port -Profile $Saved["rss|$Port"]
}

# RSS queues
foreach ($Port in $Ports) {
    Set-NetAdapterAdvancedProperty -Name $Port -RegistryKeyword '*NumRssQueues' -RegistryValue $Saved["property|$Port|*NumRssQueues"]
}

# Receive side scaling
foreach ($Port in $Ports) {
    Set-NetAdapterAdvancedProperty -Name $Port -RegistryKeyword '*RSS' -RegistryValue $Saved["property|$Port|*RSS"]
}
Set-NetOffloadGlobalSetting -ReceiveSideScaling $Saved['offload|ReceiveSideScaling']

# Receive buffers
foreach ($Port in $Ports) {
    Set-NetAdapterAdvancedProperty -Name $Port -RegistryKeyword '*ReceiveBuffers' -RegistryValue $Saved["property|$Port|*ReceiveBuffers"]
}

# Interrupt moderation
foreach ($Port in $Ports) {
    Set-NetAdapterAdvancedProperty -Name $Port -RegistryKeyword '*InterruptModeration' -RegistryValue $Saved["property|$Port|*InterruptModeration"]
}

# Receive segment coalescing
foreach ($Port in $Ports) {
    Set-NetAdapterAdvancedProperty -Name $Port -RegistryKeyword '*RscIPv4' -RegistryValue $Saved["property|$Port|*RscIPv4"]
    Set-NetAdapterAdvancedProperty -Name $Port -RegistryKeyword '*RscIPv6' -RegistryValue $Saved["property|$Port|*RscIPv6"]
}
Set-NetOffloadGlobalSetting -ReceiveSegmentCoalescing $Saved['offload|ReceiveSegmentCoalescing']

# Large send offload
foreach ($Port in $Ports) {
    Set-NetAdapterAdvancedProperty -Name $Port -RegistryKeyword '*LsoV2IPv4' -RegistryValue $Saved["property|$Port|*LsoV2IPv4"]
    Set-NetAdapterAdvancedProperty -Name $Port -RegistryKeyword '*LsoV2IPv6' -RegistryValue $Saved["property|$Port|*LsoV2IPv6"]
}

# Checksum offload
foreach ($Port in $Ports) {
    Set-NetAdapterAdvancedProperty -Name $Port -RegistryKeyword '*TCPChecksumOffloadIPv4' -RegistryValue $Saved["property|$Port|*TCPChecksumOffloadIPv4"]
    Set-NetAdapterAdvancedProperty -Name $Port -RegistryKeyword '*TCPChecksumOffloadIPv6' -RegistryValue $Saved["property|$Port|*TCPChecksumOffloadIPv6"]
}

if (-not $Saved['filter']) { Remove-NetTransportFilter -SettingName DatacenterCustom -LocalPortStart 0 -LocalPortEnd 65535 -RemotePortStart 3260 -RemotePortEnd 3260 -Confirm:$false }

Remove-Item -Path $SavedFile
