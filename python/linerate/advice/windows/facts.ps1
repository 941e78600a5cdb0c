# Collects facts of this host's SAN for `linerate advise --facts FILE` and writes them as JSON to standard output:
#
#     powershell -ExecutionPolicy Bypass -File facts.ps1 > facts.json
#
# It only reads: every command that is used is Get-, Select-, Where-, ForEach-, Find- or ConvertTo-. It reads no secrets.
# Run it as administrator on Windows Server 2012 or newer; what cannot be read is left out and reported as unknown.

$ErrorActionPreference = 'Stop'
$Missing = @{}

function Read-Part([string] $Name, [scriptblock] $Read) {
    try { @(& $Read) } catch { $Missing[$Name] = $_.Exception.Message; , $null }
}

function Get-Iso($Time) { if ($null -ne $Time) { ([datetime] $Time).ToUniversalTime().ToString('s') + 'Z' } }

$Keywords = '*JumboPacket', '*FlowControl', '*ReceiveBuffers', '*TransmitBuffers', '*RSS', '*LsoV2IPv4', '*RscIPv4',
    '*TCPChecksumOffloadIPv4', '*InterruptModeration', '*TCPConnectionOffloadIPv4'
$Interfaces = 'HKLM:\SYSTEM\CurrentControlSet\Services\Tcpip\Parameters\Interfaces'
$Session = 'HKLM:\SYSTEM\CurrentControlSet\Control\Session Manager'
$Update = 'HKLM:\SOFTWARE\Microsoft\Windows\CurrentVersion'

$Facts = [ordered] @{
    schema = 'linerate.windows-facts/1'
    time = Get-Iso (Get-Date)
    system = Read-Part 'system' {
        Get-CimInstance Win32_OperatingSystem | ForEach-Object {
            @{ name = $_.CSName; caption = $_.Caption; version = $_.Version; started = Get-Iso $_.LastBootUpTime }
        }
    }
    cpus = Read-Part 'cpus' { (Get-CimInstance Win32_ComputerSystem).NumberOfLogicalProcessors }
    adapters = Read-Part 'adapters' {
        Get-NetAdapter -Physical | ForEach-Object {
            $Adapter = $_
            @{
                name = $_.Name; description = $_.InterfaceDescription; index = $_.ifIndex; guid = $_.InterfaceGuid
                status = [string] $_.Status; bits_per_s = [uint64] $_.ReceiveLinkSpeed
                full_duplex = [bool] $_.FullDuplex; medium = [string] $_.NdisPhysicalMedium
                driver = $_.DriverVersion; driver_date = $_.DriverDate
                location = (Get-NetAdapterHardwareInfo -Name $_.Name -ErrorAction SilentlyContinue | Select-Object -First 1 |
                    ForEach-Object { '{0}:{1}:{2}' -f $_.Segment, $_.Bus, $_.Device })
                installed = Get-Iso (Get-PnpDeviceProperty -InstanceId $_.PnPDeviceID -KeyName 'DEVPKEY_Device_InstallDate' `
                    -ErrorAction SilentlyContinue).Data
                bindings = @(Get-NetAdapterBinding -Name $_.Name | Where-Object Enabled | ForEach-Object { $_.ComponentID })
                interface = Get-ItemProperty -Path "$Interfaces\$($_.InterfaceGuid)" -ErrorAction SilentlyContinue |
                    ForEach-Object { @{ ack_frequency = $_.TcpAckFrequency; no_delay = $_.TcpNoDelay } }
            }
        }
    }
    properties = Read-Part 'properties' {
        Get-NetAdapterAdvancedProperty | Where-Object { $Keywords -contains $_.RegistryKeyword } | ForEach-Object {
            @{
                name = $_.Name; keyword = $_.RegistryKeyword; value = @($_.RegistryValue)[0]
                most = $_.NumericParameterMaxValue
            }
        }
    }
    netbios = Read-Part 'netbios' {
        Get-CimInstance Win32_NetworkAdapterConfiguration -Filter 'IPEnabled=True' | ForEach-Object {
            @{ index = $_.InterfaceIndex; option = $_.TcpipNetbiosOptions }
        }
    }
    offload = Read-Part 'offload' {
        Get-NetOffloadGlobalSetting | ForEach-Object {
            @{ rss = [string] $_.ReceiveSideScaling; chimney = [string] $_.Chimney }
        }
    }
    tcp = Read-Part 'tcp' {
        Get-NetTCPSetting | ForEach-Object {
            @{
                name = $_.SettingName; autotuning = [string] $_.AutoTuningLevelLocal; ack = $_.DelayedAckFrequency
                min_rto = $_.MinRto; provider = [string] $_.CongestionProvider; ecn = [string] $_.EcnCapability
            }
        }
    }
    filters = Read-Part 'filters' {
        Get-NetTransportFilter | ForEach-Object {
            @{
                name = $_.SettingName; first = $_.RemotePortStart; last = $_.RemotePortEnd
                prefix = [string] $_.DestinationPrefix
            }
        }
    }
    addresses = Read-Part 'addresses' {
        Get-NetIPAddress -AddressFamily IPv4 | ForEach-Object {
            @{ index = $_.InterfaceIndex; address = $_.IPAddress; prefix = $_.PrefixLength }
        }
    }
    routes = Read-Part 'routes' {
        Get-NetRoute -DestinationPrefix '0.0.0.0/0' -ErrorAction SilentlyContinue | ForEach-Object { @{ index = $_.ifIndex } }
    }
    team_members = Read-Part 'team_members' { Get-NetLbfoTeamMember | ForEach-Object { @{ name = $_.Name } } }
    switch_team_members = Read-Part 'switch_team_members' {
        if (Get-Command Get-VMSwitchTeam -ErrorAction SilentlyContinue) {
            Get-VMSwitchTeam | ForEach-Object { $_.NetAdapterInterfaceDescription } | ForEach-Object { @{ description = $_ } }
        }
    }
    pfc = Read-Part 'pfc' {
        Get-NetQosFlowControl | Where-Object Enabled | ForEach-Object { @{ priority = $_.Priority } }
    }
    sessions = Read-Part 'sessions' {
        Get-IscsiSession | Where-Object IsConnected | ForEach-Object {
            $One = $_
            $Connection = Get-IscsiConnection -IscsiSession $One | Select-Object -First 1
            @{
                id = $One.SessionIdentifier; target = $One.TargetNodeAddress
                own = $Connection.InitiatorAddress; portal = $Connection.TargetAddress
                hop = (Find-NetRoute -RemoteIPAddress $Connection.TargetAddress -ErrorAction SilentlyContinue |
                    ForEach-Object { $_.NextHop } | Where-Object { $_ } | Select-Object -First 1)
                disks = @(Get-Disk -IscsiSession $One -ErrorAction SilentlyContinue | ForEach-Object { $_.Number })
            }
        }
    }
    portals = Read-Part 'portals' {
        Get-IscsiTarget | ForEach-Object {
            $Target = $_
            Get-IscsiTargetPortal -IscsiTarget $Target -ErrorAction SilentlyContinue | ForEach-Object {
                @{ target = $Target.NodeAddress; portal = $_.TargetPortalAddress }
            }
        }
    }
    disks = Read-Part 'disks' {
        Get-Disk | Where-Object { [string] $_.BusType -eq 'iSCSI' } | ForEach-Object {
            $Disk = $_
            @{
                number = $_.Number; serial = $_.SerialNumber; vendor = $_.Manufacturer; product = $_.Model
                logical = $_.LogicalSectorSize; physical = $_.PhysicalSectorSize
                write_cache = (Get-PhysicalDisk -ErrorAction SilentlyContinue |
                    Where-Object { $_.DeviceId -eq [string] $Disk.Number } |
                    Get-StorageAdvancedProperty -ErrorAction SilentlyContinue | ForEach-Object { $_.IsDeviceCacheEnabled })
                offsets = @(Get-Partition -DiskNumber $_.Number -ErrorAction SilentlyContinue | ForEach-Object { $_.Offset })
                volumes = @(Get-Partition -DiskNumber $_.Number -ErrorAction SilentlyContinue |
                    Get-Volume -ErrorAction SilentlyContinue | ForEach-Object {
                        @{ cluster = $_.AllocationUnitSize; size = $_.Size; free = $_.SizeRemaining }
                    })
            }
        }
    }
    mpio = Read-Part 'mpio' {
        Get-CimInstance -Namespace root\wmi -ClassName MPIO_DISK_INFO | ForEach-Object { $_.DriveInfo } | ForEach-Object {
            @{ disk = $_.Name; paths = $_.NumberPaths; dsm = $_.DsmName }
        }
    }
    policies = Read-Part 'policies' {
        Get-CimInstance -Namespace root\wmi -ClassName DSM_QueryLBPolicy_V2 | ForEach-Object {
            @{
                instance = $_.InstanceName; policy = $_.LoadBalancePolicy.LoadBalancePolicy
                active = @($_.LoadBalancePolicy.DSM_Paths | Where-Object { $_.PrimaryPath }).Count
            }
        }
    }
    supported = Read-Part 'supported' {
        Get-MSDSMSupportedHW | ForEach-Object { @{ vendor = $_.VendorId; product = $_.ProductId } }
    }
    connections = Read-Part 'connections' {
        Get-NetTCPConnection -State Established | ForEach-Object {
            @{ own = $_.LocalAddress; own_port = $_.LocalPort; port = $_.RemotePort }
        }
    }
    target = Read-Part 'target' {
        Get-CimInstance -Namespace root\wmi -ClassName WT_Portal | ForEach-Object {
            @{ address = $_.Address; listens = [bool] $_.Listen }
        }
    }
    pending = Read-Part 'pending' {
        $Renames = (Get-ItemProperty -Path $Session -ErrorAction SilentlyContinue).PendingFileRenameOperations
        $Keys = "$Update\Component Based Servicing\RebootPending", "$Update\WindowsUpdate\Auto Update\RebootRequired"
        @{ reboot = [bool] (@($Keys | Where-Object { $null -ne (Get-Item -Path $_ -ErrorAction SilentlyContinue) }).Count -or $Renames) }
    }
}
$Facts['missing'] = $Missing
$Facts | ConvertTo-Json -Depth 6
