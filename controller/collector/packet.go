package collector

import (
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"

	"sextant/packet/telemetry"
)

// snapBytes is how much of a packet is read: IPv6, a hop-by-hop header of the greatest trace, a
// segment routing header, and what is inside.
const snapBytes = 1024

// hopByHopFilter takes IPv6 packets that come, and of them those that have hop-by-hop options.
var hopByHopFilter = []unix.SockFilter{
	{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: skfPacketType},
	{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jt: 3, K: unix.PACKET_OUTGOING},
	{Code: unix.BPF_LD | unix.BPF_B | unix.BPF_ABS, K: 6}, // next header
	{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jf: 1, K: unix.IPPROTO_HOPOPTS},
	{Code: unix.BPF_RET | unix.BPF_K, K: snapBytes},
	{Code: unix.BPF_RET | unix.BPF_K, K: 0},
}

// skfPacketType is SKF_AD_OFF + SKF_AD_PKTTYPE of linux/filter.h.
const skfPacketType = 1<<32 - 0x1000 + 4

// ListenPackets opens the packets with IOAM traces or Path Tracing in hop-by-hop options that come
// by an interface, before this node writes into them. It needs CAP_NET_RAW.
func ListenPackets(name string) (*Reader, error) {
	fail := func(err error) (*Reader, error) {
		return nil, fmt.Errorf("listen to packets of interface %s: %w", name, err)
	}
	device, err := net.InterfaceByName(name)
	if err != nil {
		return fail(fmt.Errorf("%w; ip link shows their names", err))
	}
	// protocol 0: nothing comes before the filter is there
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return fail(fmt.Errorf("%w; run with CAP_NET_RAW", err))
	}
	_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, receiveBuffer)
	program := unix.SockFprog{Len: uint16(len(hopByHopFilter)),
		Filter: unsafe.SliceData(hopByHopFilter)}
	if err = unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER,
		&program); err == nil {
		// in network order
		ipv6 := binary.NativeEndian.Uint16([]byte{unix.ETH_P_IPV6 >> 8, unix.ETH_P_IPV6 & 0xff})
		err = unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: ipv6, Ifindex: device.Index})
	}
	if err != nil {
		unix.Close(fd)
		return fail(err)
	}
	return newReader(FromPacket, "packets of interface "+name, os.NewFile(uintptr(fd), name))
}

// Packet takes an IPv6 packet, whole or cut off, which came at a steady time (nanoseconds).
func (t *Table) Packet(b []byte, nowNS int64) {
	t.Packets++
	t.samples = t.samples[:0]
	t.packet(b, telemetry.InIPv6, nowNS)
	t.add(false, nowNS)
	if t.options.Watch != nil && len(t.samples) > 0 {
		t.report = Report{Source: FromPacket}
		t.watch(nowNS)
	}
}
