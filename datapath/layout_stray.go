package datapath

import "net/netip"

const (
	strayVRFsMax = 16  // STRAY_VRFS_MAX
	straySIDsMax = 256 // STRAY_SIDS_MAX
)

// What a SID decapsulates, enum stray_family.
const (
	strayIPv4 = 1
	strayIPv6 = 2
)

type straySettings struct {
	Domain domain
}

type strayVRF struct {
	Interface     uint32
	Netns         uint32
	Backup        uint32
	Address       [6]byte
	BackupAddress [6]byte
	Name          [16]byte
}

type straySIDKey struct {
	Bits    uint32
	Address [16]byte
}

type straySID struct {
	VRF      uint32
	Families uint32
}

func straySIDKeyOf(p netip.Prefix) straySIDKey {
	return straySIDKey{Bits: uint32(p.Bits()), Address: p.Masked().Addr().As16()}
}

// strayName is the end of a name, which differs where beginnings may not.
func strayName(name string) (out [16]byte) {
	copy(out[:], name[max(0, len(name)-len(out)):])
	return out
}
