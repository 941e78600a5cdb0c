# Saves the present values, sets new ones and shows them. Run as administrator, on the host itself.
#requires -RunAsAdministrator
$ErrorActionPreference = 'Stop'
$Ports = @('SAN 1', 'O''Neil')
$SavedFile = Join-Path $PSScriptRoot 'linerate-saved.xml'
if (Test-Path $SavedFile) { throw "$SavedFile exists: undo the earlier change first" }

$Saved = @{}
foreach ($Port in $Ports) {
    $Saved["property|$Port|*JumboPacket"] = (Get-NetAdapterAdvancedProperty -Name $Port -RegistryKeyword '*JumboPacket').RegistryValue
}
foreach ($Port in $Ports) {
    $Saved["property|$Port|*ReceiveBuffers"] = (Get-NetAdapterAdvancedProperty -Name $Port -RegistryKeyword '*ReceiveBuffers').RegistryValue
}
foreach ($Port in $Ports) {
    $Saved["property|$Port|*TransmitBuffers"] = (Get-NetAdapterAdvancedProperty -Name $Port -RegistryKeyword '*TransmitBuffers').RegistryValue
}
foreach ($Port in $Ports) {
    $Saved["property|$Port|*FlowControl"] = (Get-NetAdapterAdvancedProperty -Name $Port -RegistryKeyword '*FlowControl').RegistryValue
}
$Saved | Export-Clixml -Path $SavedFile

# Jumbo frames: mtu = 9000
foreach ($Port in $Ports) {
    Set-NetAdapterAdvancedProperty -Name $Port -RegistryKeyword '*JumboPacket' -RegistryValue 9014
}

# Receive buffers: rx_ring_frames = 4096
foreach ($Port in $Ports) {
    Set-NetAdapterAdvancedProperty -Name $Port -RegistryKeyword '*ReceiveBuffers' -RegistryValue 4096
}

# Transmit buffers: tx_ring_frames = 16384
foreach ($Port in $Ports) {
    Set-NetAdapterAdvancedProperty -Name $Port -RegistryKeyword '*TransmitBuffers' -RegistryValue 16384
}

# Flow control: flow_control = on
foreach ($Port in $Ports) {
    Set-NetAdapterAdvancedProperty -Name $Port -RegistryKeyword '*FlowControl' -RegistryValue 3
}

# The values now
foreach ($Port in $Ports) {
    (Get-NetAdapterAdvancedProperty -Name $Port -RegistryKeyword '*JumboPacket') | Format-Table 'Name', 'DisplayName', 'DisplayValue'
}
foreach ($Port in $Ports) {
    (Get-NetAdapterAdvancedProperty -Name $Port -RegistryKeyword '*ReceiveBuffers') | Format-Table 'Name', 'DisplayName', 'DisplayValue'
}
foreach ($Port in $Ports) {
    (Get-NetAdapterAdvancedProperty -Name $Port -RegistryKeyword '*TransmitBuffers') | Format-Table 'Name', 'DisplayName', 'DisplayValue'
}
foreach ($Port in $Ports) {
    (Get-NetAdapterAdvancedProperty -Name $Port -RegistryKeyword '*FlowControl') | Format-Table 'Name', 'DisplayName', 'DisplayValue'
}
