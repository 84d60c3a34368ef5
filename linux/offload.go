package linux

import (
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Offload is a feature of an interface that ethtool(8) turns on and off.
type Offload uint32

// The offloads that matter to XDP on veth, by their SIOCETHTOOL "set" command
// (linux/ethtool.h).
const (
	// TxChecksum leaves the checksum of sent packets to the device. A veth
	// never computes it, and native XDP redirect loses the mark that says so.
	TxChecksum Offload = 0x17 // ETHTOOL_STXCSUM
	// GRO joins received segments. On a veth it also turns NAPI on.
	GRO Offload = 0x2c // ETHTOOL_SGRO
)

// String names the offload as "ethtool -K" does.
func (o Offload) String() string {
	if o == TxChecksum {
		return "tx"
	}
	return "gro"
}

// SetOffload turns an offload of an interface in the current network namespace
// on or off. An offload that is already so is no error.
func SetOffload(iface string, offload Offload, on bool) error {
	value := struct{ command, data uint32 }{command: uint32(offload)}
	word := "off"
	if on {
		value.data, word = 1, "on"
	}
	err := ethtool(iface, unsafe.Pointer(&value))
	return Failed(err, "turn offload %s %s on interface %s", offload, word, iface)
}

// hasOffload asks whether an offload is on. The command to get it is the one below that to set it.
func hasOffload(iface string, offload Offload) (on bool, err error) {
	value := struct{ command, data uint32 }{command: uint32(offload) - 1}
	err = ethtool(iface, unsafe.Pointer(&value))
	return value.data != 0, err
}

// ethtool sends one SIOCETHTOOL request.
func ethtool(iface string, value unsafe.Pointer) error {
	if len(iface) >= unix.IFNAMSIZ {
		return unix.ENODEV
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	request := struct { // struct ifreq with ifr_data
		name  [unix.IFNAMSIZ]byte
		value unsafe.Pointer
		_     [24 - unsafe.Sizeof(uintptr(0))]byte
	}{value: value}
	copy(request.name[:], iface)
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCETHTOOL,
		uintptr(unsafe.Pointer(&request)))
	runtime.KeepAlive(value)
	if errno != 0 {
		return errno
	}
	return nil
}
