package linux

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// The generic netlink family of MPTCP's path managers: include/uapi/linux/mptcp_pm.h.
const (
	mptcpFamily = "mptcp_pm"
	mptcpGroup  = "mptcp_pm_events"

	mptcpRemove         = 9
	mptcpSubflowCreate  = 10
	mptcpSubflowDestroy = 11

	mptcpAttrAddress = 1
	mptcpAttrToken   = 4
	mptcpAttrLocalID = 5
	mptcpAttrRemote  = 6

	mptcpAddressFamily = 1
	mptcpAddressID     = 2
	mptcpAddress4      = 3
	mptcpAddress6      = 4
	mptcpAddressPort   = 5
	mptcpAddressFlags  = 6

	mptcpFlagBackup = 1 << 2 // of an address
)

// Kinds of MPTCPEvent.
const (
	MPTCPEstablished        = 2 // a connection can have more subflows
	MPTCPClosed             = 3
	MPTCPSubflowEstablished = 10 // one beside the first
	MPTCPSubflowClosed      = 11
)

// MPTCPEvent is news of a connection in this network namespace.
type MPTCPEvent struct {
	Kind          uint8
	Token         uint32 // of the connection, at this end
	Local, Remote netip.AddrPort
	Server        bool // the connection was opened by the other end
}

// MPTCP is told of connections. Those of kernels' own path managers are among them.
type MPTCP struct {
	socket int
	wake   *os.File
	wakeFD int // of wake
}

// OpenMPTCP subscribes to news of connections.
func OpenMPTCP() (*MPTCP, error) {
	family, err := netlink.GenlFamilyGet(mptcpFamily)
	if err != nil {
		return nil, fmt.Errorf("the kernel has no path managers of MPTCP: %w", err)
	}
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_GENERIC)
	if err != nil {
		return nil, fmt.Errorf("open netlink: %w", err)
	}
	err = unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK})
	for _, group := range family.Groups {
		if group.Name == mptcpGroup && err == nil {
			err = unix.SetsockoptInt(fd, unix.SOL_NETLINK, unix.NETLINK_ADD_MEMBERSHIP,
				int(group.ID))
		}
	}
	if err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("hear of MPTCP connections: %w; run it as root", err)
	}
	wake, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("hear of MPTCP connections: %w", err)
	}
	return &MPTCP{fd, os.NewFile(uintptr(wake), "wake"), wake}, nil
}

// Close ends it.
func (m *MPTCP) Close() {
	unix.Close(m.socket)
	m.wake.Close()
}

// Wake ends the Next that waits, or the one that comes. Others may call it, also after Close.
func (m *MPTCP) Wake() { _, _ = m.wake.Write(binary.NativeEndian.AppendUint64(nil, 1)) }

// ErrMPTCPLost says that news was lost, as more came than was read. What follows is whole.
var ErrMPTCPLost = errors.New("news of MPTCP connections was lost: too many at once")

// Next returns what is new, within this time.
func (m *MPTCP) Next(within time.Duration) ([]MPTCPEvent, error) {
	timeout := unix.NsecToTimespec(int64(max(within, 0)))
	ready := []unix.PollFd{{Fd: int32(m.socket), Events: unix.POLLIN},
		{Fd: int32(m.wakeFD), Events: unix.POLLIN}}
	if n, err := unix.Ppoll(ready, &timeout, nil); err != nil || n < 1 {
		return nil, nil
	}
	buffer := make([]byte, 1<<16)
	if ready[1].Revents != 0 {
		_, _ = m.wake.Read(buffer)
	}
	if ready[0].Revents == 0 {
		return nil, nil
	}
	n, _, err := unix.Recvfrom(m.socket, buffer, 0)
	if errors.Is(err, unix.ENOBUFS) {
		return nil, ErrMPTCPLost
	}
	if err != nil {
		return nil, fmt.Errorf("hear of MPTCP connections: %w", err)
	}
	return parseMPTCPEvents(buffer[:n]), nil
}

// parseMPTCPEvents reads messages of the group. What can't be read is left out.
func parseMPTCPEvents(b []byte) (list []MPTCPEvent) {
	for len(b) >= unix.SizeofNlMsghdr+nl.SizeofGenlmsg {
		length := int(binary.NativeEndian.Uint32(b))
		if length < unix.SizeofNlMsghdr+nl.SizeofGenlmsg || length > len(b) {
			return list
		}
		body := b[unix.SizeofNlMsghdr:length]
		if e, ok := parseMPTCPEvent(body[0], body[nl.SizeofGenlmsg:]); ok {
			list = append(list, e)
		}
		b = b[min(len(b), (length+3)&^3):]
	}
	return list
}

func parseMPTCPEvent(kind uint8, b []byte) (e MPTCPEvent, ok bool) {
	attributes, err := attributesOf(b)
	if err != nil {
		return e, false
	}
	e.Kind = kind
	var from, to netip.Addr
	var ports [2]uint16
	for _, a := range attributes {
		v := a.Value
		switch { // enum mptcp_event_attr
		case a.Attr.Type == 1 && len(v) == 4:
			e.Token = binary.NativeEndian.Uint32(v)
		case a.Attr.Type == 5 && len(v) == 4 || a.Attr.Type == 6 && len(v) == 16:
			from, _ = netip.AddrFromSlice(v)
		case a.Attr.Type == 7 && len(v) == 4 || a.Attr.Type == 8 && len(v) == 16:
			to, _ = netip.AddrFromSlice(v)
		case (a.Attr.Type == 9 || a.Attr.Type == 10) && len(v) == 2:
			ports[a.Attr.Type-9] = binary.BigEndian.Uint16(v)
		case a.Attr.Type == 18 && len(v) == 1:
			e.Server = v[0] != 0
		}
	}
	e.Local = netip.AddrPortFrom(from.Unmap(), ports[0])
	e.Remote = netip.AddrPortFrom(to.Unmap(), ports[1])
	return e, true
}

// CreateSubflow opens a subflow of a connection between these ends. Each local end has an ID of its
// own in the connection, from 1. A backup is used where no other subflow can be. The error is
// EINVAL for a connection of another path manager, and for an ID that a subflow had that ended by
// itself; EADDRINUSE if the port is taken.
func CreateSubflow(token uint32, id uint8, local, remote netip.AddrPort, backup bool) error {
	at := mptcpAddress(mptcpAttrAddress, local)
	at.AddRtAttr(mptcpAddressID, []byte{id})
	if backup {
		at.AddRtAttr(mptcpAddressFlags, nl.Uint32Attr(mptcpFlagBackup))
	}
	if err := changeSubflow(mptcpSubflowCreate, token, at, remote); err != nil {
		return fmt.Errorf("open a subflow from %s to %s: %w", local, remote, err)
	}
	return nil
}

// DestroySubflow ends a subflow of a connection, which goes on by the others.
func DestroySubflow(token uint32, local, remote netip.AddrPort) error {
	err := changeSubflow(mptcpSubflowDestroy, token, mptcpAddress(mptcpAttrAddress, local), remote)
	if err != nil {
		return fmt.Errorf("end the subflow from %s to %s: %w", local, remote, err)
	}
	return nil
}

func changeSubflow(command byte, token uint32, local *nl.RtAttr, remote netip.AddrPort) error {
	return changeMPTCP(command, token, local, mptcpAddress(mptcpAttrRemote, remote))
}

// ForgetLocalID frees the ID of a local end for another one, and tells the other end so: the kernel
// keeps that of a subflow that ended by itself.
func ForgetLocalID(token uint32, id uint8) error {
	err := changeMPTCP(mptcpRemove, token, nl.NewRtAttr(mptcpAttrLocalID, []byte{id}))
	if err != nil {
		return fmt.Errorf("free ID %d of an MPTCP connection: %w", id, err)
	}
	return nil
}

func changeMPTCP(command byte, token uint32, attributes ...*nl.RtAttr) error {
	family, err := netlink.GenlFamilyGet(mptcpFamily)
	if err != nil {
		return err
	}
	request := nl.NewNetlinkRequest(int(family.ID), unix.NLM_F_ACK)
	request.AddRawData([]byte{command, genericVersion, 0, 0})
	request.AddRawData(nl.NewRtAttr(mptcpAttrToken, nl.Uint32Attr(token)).Serialize())
	for _, a := range attributes {
		request.AddRawData(a.Serialize())
	}
	_, err = request.Execute(unix.NETLINK_GENERIC, 0)
	return err
}

func mptcpAddress(kind int, at netip.AddrPort) *nl.RtAttr {
	a := nl.NewRtAttr(kind|unix.NLA_F_NESTED, nil)
	family, attribute := uint16(unix.AF_INET6), mptcpAddress6
	if at.Addr().Is4() {
		family, attribute = unix.AF_INET, mptcpAddress4
	}
	a.AddRtAttr(mptcpAddressFamily, nl.Uint16Attr(family))
	a.AddRtAttr(attribute, at.Addr().AsSlice())
	a.AddRtAttr(mptcpAddressPort, nl.Uint16Attr(at.Port()))
	return a
}
