# Saves the present values, sets new ones and shows them. Run as administrator, on the host itself.
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
if (Test-Path $SavedFile) { throw "$SavedFile exists: undo the earlier change first" }

$Saved = @{}
foreach ($Port in $Ports) {
    $Saved["property|$Port|*TCPChecksumOffloadIPv4"] = (Get-NetAdapterAdvancedProperty -Name $Port -RegistryKeyword '*TCPChecksumOffloadIPv4').RegistryValue
    $Saved["property|$Port|*TCPChecksumOffloadIPv6"] = (Get-NetAdapterAdvancedProperty -Name $Port -RegistryKeyword '*TCPChecksumOffloadIPv6').RegistryValue
}
foreach ($Port in $Ports) {
    $Saved["property|$Port|*LsoV2IPv4"] = (Get-NetAdapterAdvancedProperty -Name $Port -RegistryKeyword '*LsoV2IPv4').RegistryValue
    $Saved["property|$Port|*LsoV2IPv6"] = (Get-NetAdapterAdvancedProperty -Name $Port -RegistryKeyword '*LsoV2IPv6').RegistryValue
}
$Saved['offload|ReceiveSegmentCoalescing'] = [string](Get-NetOffloadGlobalSetting).ReceiveSegmentCoalescing
foreach ($Port in $Ports) {
    $Saved["property|$Port|*RscIPv4"] = (Get-NetAdapterAdvancedProperty -Name $Port -RegistryKeyword '*RscIPv4').RegistryValue
    $Saved["property|$Port|*RscIPv6"] = (Get-NetAdapterAdvancedProperty -Name $Port -RegistryKeyword '*RscIPv6').RegistryValue
}
foreach ($Port in $Ports) {
    $Saved["property|$Port|*InterruptModeration"] = (Get-NetAdapterAdvancedProperty -Name $Port -RegistryKeyword '*InterruptModeration').RegistryValue
}
foreach ($Port in $Ports) {
    $Saved["property|$Port|*ReceiveBuffers"] = (Get-NetAdapterAdvancedProperty -Name $Port -RegistryKeyword '*ReceiveBuffers').RegistryValue
}
$Saved['offload|ReceiveSideScaling'] = [string](Get-NetOffloadGlobalSetting).ReceiveSideScaling
foreach ($Port in $Ports) {
    $Saved["property|$Port|*RSS"] = (Get-NetAdapterAdvancedProperty -Name $Port -RegistryKeyword '*RSS').RegistryValue
}
foreach ($Port in $Ports) {
    $Saved["property|$Port|*NumRssQueues"] = (Get-NetAdapterAdvancedProperty -Name $Port -RegistryKeyword '*NumRssQueues').RegistryValue
}
foreach ($Port in $Ports) {
    $Saved["rss|$Port"] = [string](Get-NetAdapterRss -Name $Port).Profile
}
$Saved['offload|Chimney'] = [string](Get-NetOffloadGlobalSetting).Chimney
foreach ($Port in $Ports) {
    $Saved["property|$Port|*TCPConnectionOffloadIPv4"] = (Get-NetAdapterAdvancedProperty -Name $Port -RegistryKeyword '*TCPConnectionOffloadIPv4').RegistryValue
    $Saved["property|$Port|*TCPConnectionOffloadIPv6"] = (Get-NetAdapterAdvancedProperty -Name $Port -RegistryKeyword '*TCPConnectionOffloadIPv6').RegistryValue
}
$Saved['tcp|AutoTuningLevelLocal'] = [string](Get-NetTCPSetting -SettingName DatacenterCustom).AutoTuningLevelLocal
$Saved['tcp|DelayedAckFrequency'] = [string](Get-NetTCPSetting -SettingName DatacenterCustom).DelayedAckFrequency
$Saved['tcp|CongestionProvider'] = [string](Get-NetTCPSetting -SettingName DatacenterCustom).CongestionProvider
$Saved['tcp|EcnCapability'] = [string](Get-NetTCPSetting -SettingName DatacenterCustom).EcnCapability
$Saved['tcp|MinRtoMs'] = [string](Get-NetTCPSetting -SettingName DatacenterCustom).MinRto
foreach ($Port in $Ports) {
    $Saved["interface|$Port|TcpNoDelay"] = (Get-ItemProperty -Path (Get-InterfaceKey $Port)).TcpNoDelay
}
$Saved['initiator|ImmediateData'] = (Get-ItemProperty -Path (Get-InitiatorKey)).ImmediateData
$Saved['initiator|InitialR2T'] = (Get-ItemProperty -Path (Get-InitiatorKey)).InitialR2T
$Saved['initiator|FirstBurstLength'] = (Get-ItemProperty -Path (Get-InitiatorKey)).FirstBurstLength
$Saved['initiator|MaxBurstLength'] = (Get-ItemProperty -Path (Get-InitiatorKey)).MaxBurstLength
$Saved['initiator|MaxRecvDataSegmentLength'] = (Get-ItemProperty -Path (Get-InitiatorKey)).MaxRecvDataSegmentLength
$Filter = Get-NetTransportFilter | Where-Object { $_.SettingName -eq 'DatacenterCustom' -and
    $_.RemotePortStart -eq 3260 -and $_.RemotePortEnd -eq 3260 }
$Saved['filter'] = [bool]$Filter
$Saved | Export-Clixml -Path $SavedFile

# TCP connections to an iSCSI port follow the profile
if (-not $Filter) { New-NetTransportFilter -SettingName DatacenterCustom -LocalPortStart 0 -LocalPortEnd 65535 -RemotePortStart 3260 -RemotePortEnd 3260 }

# Checksum offload: checksum_offload = rx
foreach ($Port in $Ports) {
    Set-NetAdapterAdvancedProperty -Name $Port -RegistryKeyword '*TCPChecksumOffloadIPv4' -RegistryValue 2
    Set-NetAdapterAdvancedProperty -Name $Port -RegistryKeyword '*TCPChecksumOffloadIPv6' -RegistryValue 2
}

# Large send offload: lso = off
foreach ($Port in $Ports) {
    Set-NetAdapterAdvancedProperty -Name $Port -RegistryKeyword '*LsoV2IPv4' -RegistryValue 0
    Set-NetAdapterAdvancedProperty -Name $Port -RegistryKeyword '*LsoV2IPv6' -RegistryValue 0
}

# Receive segment coalescing: rsc = off
Set-NetOffloadGlobalSetting -ReceiveSegmentCoalescing Disabled
foreach ($Port in $Ports) {
    Set-NetAdapterAdvancedProperty -Name $Port -RegistryKeyword '*RscIPv4' -RegistryValue 0
    Set-NetAdapterAdvancedProperty -Name $Port -RegistryKeyword '*RscIPv6' -RegistryValue 0
}

# Interrupt moderation: interrupt_moderation_us = off
foreach ($Port in $Ports) {
    Set-NetAdapterAdvancedProperty -Name $Port -RegistryKeyword '*InterruptModeration' -RegistryValue 0
}

# Receive buffers: rx_ring_frames = max
foreach ($Port in $Ports) {
    Set-NetAdapterAdvancedProperty -Name $Port -RegistryKeyword '*ReceiveBuffers' -RegistryValue (Get-NetAdapterAdvancedProperty -Name $Port -RegistryKeyword '*ReceiveBuffers').NumericParameterMaxValue
}

# Receive side scaling: rss = off
Set-NetOffloadGlobalSetting -ReceiveSideScaling Disabled
foreach ($Port in $Ports) {
    Set-NetAdapterAdvancedProperty -Name $Port -RegistryKeyword '*RSS' -RegistryValue 0
}

# RSS queues: rss_queues = 16
foreach ($Port in $Ports) {
    Set-NetAdapterAdvancedProperty -Name $Port -RegistryKeyword '*NumRssQueues' -RegistryValue 16
}

# RSS load balancing profile: rss_profile = numa
foreach ($Port in $Ports) {
    Set-NetAdapterRss -Name $Port -Profile NUMA
}

# TCP offload engine: toe = on
Set-NetOffloadGlobalSetting -Chimney Enabled
foreach ($Port in $Ports) {
    Set-NetAdapterAdvancedProperty -Name $Port -RegistryKeyword '*TCPConnectionOffloadIPv4' -RegistryValue 1
    Set-NetAdapterAdvancedProperty -Name $Port -RegistryKeyword '*TCPConnectionOffloadIPv6' -RegistryValue 1
}

# Receive-window auto-tuning: receive_window_autotuning = off
Set-NetTCPSetting -SettingName DatacenterCustom -AutoTuningLevelLocal Disabled

# Delayed ACK: delayed_ack = off
Set-NetTCPSetting -SettingName DatacenterCustom -DelayedAckFrequency 1

# Congestion control: congestion_control = dctcp
Set-NetTCPSetting -SettingName DatacenterCustom -CongestionProvider DCTCP

# Congestion notification (ECN): ecn = on
Set-NetTCPSetting -SettingName DatacenterCustom -EcnCapability Enabled

# Shortest retransmission timeout: rto_min_us = 20000
Set-NetTCPSetting -SettingName DatacenterCustom -MinRtoMs 20

# Nagle's algorithm: nagle = off
foreach ($Port in $Ports) {
    Set-ItemProperty -Path (Get-InterfaceKey $Port) -Name TcpNoDelay -Type DWord -Value 1
}

# Immediate data: immediate_data = off
Set-ItemProperty -Path (Get-InitiatorKey) -Name ImmediateData -Type DWord -Value 0

# Initial R2T: initial_r2t = on
Set-ItemProperty -Path (Get-InitiatorKey) -Name InitialR2T -Type DWord -Value 1

# First burst: first_burst_bytes = 65536
Set-ItemProperty -Path (Get-InitiatorKey) -Name FirstBurstLength -Type DWord -Value 65536

# Largest burst: max_burst_bytes = 262144
Set-ItemProperty -Path (Get-InitiatorKey) -Name MaxBurstLength -Type DWord -Value 262144

# Largest data segment: max_recv_data_segment_bytes = 65536
Set-ItemProperty -Path (Get-InitiatorKey) -Name MaxRecvDataSegmentLength -Type DWord -Value 65536

# The values now
foreach ($Port in $Ports) {
    (Get-NetAdapterAdvancedProperty -Name $Port -RegistryKeyword '*TCPChecksumOffloadIPv4') | Format-Table 'Name', 'DisplayName', 'DisplayValue'
    (Get-NetAdapterAdvancedProperty -Name $Port -RegistryKeyword '*TCPChecksumOffloadIPv6') | Format-Table 'Name', 'DisplayName', 'DisplayValue'
}
foreach ($Port in $Ports) {
    (Get-NetAdapterAdvancedProperty -Name $Port -RegistryKeyword '*LsoV2IPv4') | Format-Table 'Name', 'DisplayName', 'DisplayValue'
    (Get-NetAdapterAdvancedProperty -Name $Port -RegistryKeyword '*LsoV2IPv6') | Format-Table 'Name', 'DisplayName', 'DisplayValue'
}
Get-NetOffloadGlobalSetting | Format-List ReceiveSegmentCoalescing
foreach ($Port in $Ports) {
    (Get-NetAdapterAdvancedProperty -Name $Port -RegistryKeyword '*RscIPv4') | Format-Table 'Name', 'DisplayName', 'DisplayValue'
    (Get-NetAdapterAdvancedProperty -Name $Port -RegistryKeyword '*RscIPv6') | Format-Table 'Name', 'DisplayName', 'DisplayValue'
}
foreach ($Port in $Ports) {
    (Get-NetAdapterAdvancedProperty -Name $Port -RegistryKeyword '*InterruptModeration') | Format-Table 'Name', 'DisplayName', 'DisplayValue'
}
foreach ($Port in $Ports) {
    (Get-NetAdapterAdvancedProperty -Name $Port -RegistryKeyword '*ReceiveBuffers') | Format-Table 'Name', 'DisplayName', 'DisplayValue'
}
Get-NetOffloadGlobalSetting | Format-List ReceiveSideScaling
foreach ($Port in $Ports) {
    (Get-NetAdapterAdvancedProperty -Name $Port -RegistryKeyword '*RSS') | Format-Table 'Name', 'DisplayName', 'DisplayValue'
}
foreach ($Port in $Ports) {
    (Get-NetAdapterAdvancedProperty -Name $Port -RegistryKeyword '*NumRssQueues') | Format-Table 'Name', 'DisplayName', 'DisplayValue'
}
foreach ($Port in $Ports) {
    Get-NetAdapterRss -Name $Port | Format-Table 'Name', 'Profile'
}
Get-NetOffloadGlobalSetting | Format-List Chimney
foreach ($Port in $Ports) {
    (Get-NetAdapterAdvancedProperty -Name $Port -RegistryKeyword '*TCPConnectionOffloadIPv4') | Format-Table 'Name', 'DisplayName', 'DisplayValue'
    (Get-NetAdapterAdvancedProperty -Name $Port -RegistryKeyword '*TCPConnectionOffloadIPv6') | Format-Table 'Name', 'DisplayName', 'DisplayValue'
}
Get-NetTCPSetting -SettingName DatacenterCustom | Format-Table 'SettingName', 'AutoTuningLevelLocal'
Get-NetTCPSetting -SettingName DatacenterCustom | Format-Table 'SettingName', 'DelayedAckFrequency'
Get-NetTCPSetting -SettingName DatacenterCustom | Format-Table 'SettingName', 'CongestionProvider'
Get-NetTCPSetting -SettingName DatacenterCustom | Format-Table 'SettingName', 'EcnCapability'
Get-NetTCPSetting -SettingName DatacenterCustom | Format-Table 'SettingName', 'MinRto'
foreach ($Port in $Ports) {
    Get-ItemProperty -Path (Get-InterfaceKey $Port) | Format-List TcpNoDelay
}
Get-ItemProperty -Path (Get-InitiatorKey) | Format-List ImmediateData
Get-ItemProperty -Path (Get-InitiatorKey) | Format-List InitialR2T
Get-ItemProperty -Path (Get-InitiatorKey) | Format-List FirstBurstLength
Get-ItemProperty -Path (Get-InitiatorKey) | Format-List MaxBurstLength
Get-ItemProperty -Path (Get-InitiatorKey) | Format-List MaxRecvDataSegmentLength
