# Puts back what was saved before the change. Run as administrator, on the host itself.
#requires -RunAsAdministrator
$ErrorActionPreference = 'Stop'
$Ports = @('SAN 1', 'O''Neil')
$SavedFile = Join-Path $PSScriptRoot 'linerate-saved.xml'
$Saved = Import-Clixml -Path $SavedFile

# Flow control
foreach ($Port in $Ports) {
    Set-NetAdapterAdvancedProperty -Name $Port -RegistryKeyword '*FlowControl' -RegistryValue $Saved["property|$Port|*FlowControl"]
}

# Transmit buffers
foreach ($Port in $Ports) {
    Set-NetAdapterAdvancedProperty -Name $Port -RegistryKeyword '*TransmitBuffers' -RegistryValue $Saved["property|$Port|*TransmitBuffers"]
}

# Receive buffers
foreach ($Port in $Ports) {
    Set-NetAdapterAdvancedProperty -Name $Port -RegistryKeyword '*ReceiveBuffers' -RegistryValue $Saved["property|$Port|*ReceiveBuffers"]
}

# Jumbo frames
foreach ($Port in $Ports) {
    Set-NetAdapterAdvancedProperty -Name $Port -RegistryKeyword '*JumboPacket' -RegistryValue $Saved["property|$Port|*JumboPacket"]
}

Remove-Item -Path $SavedFile
