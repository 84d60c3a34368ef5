package datapath

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"

	"github.com/cilium/ebpf"
)

// PinnedServices reads the number of each service that an earlier agent left in dir; none if
// nothing is pinned there. In the entries of all versions the number comes first.
func PinnedServices(dir string) (map[ServiceKey]uint32, error) {
	table, err := openPinned(dir, "services")
	if table == nil {
		return nil, err
	}
	defer table.Close()
	numbers := map[ServiceKey]uint32{}
	var key serviceKey
	var value []byte
	entries := table.Iterate()
	for entries.Next(&key, &value) {
		if n := binary.NativeEndian.Uint32(value); n != 0 { // 0 is the mark of a VIP
			numbers[key.service()] = n
		}
	}
	if err := entries.Err(); err != nil {
		return nil, fmt.Errorf("read pinned services in %s: %w", dir, err)
	}
	return numbers, nil
}

// service is the opposite of ServiceKey.key.
func (k serviceKey) service() ServiceKey {
	vip := netip.AddrFrom16(k.VIP)
	if k.IPv4 == 1 {
		vip = vip.Unmap()
	}
	return ServiceKey{VIP: vip, Port: fromBigEndian(k.Port), Protocol: k.Protocol}
}

// PinnedSIDs reads the SIDs that an earlier agent left in dir, from the id first on, up to the
// first id that has none.
func PinnedSIDs(dir string, first uint16) ([]netip.Addr, error) {
	table, err := openPinned(dir, "sids")
	if table == nil {
		return nil, err
	}
	defer table.Close()
	var sids []netip.Addr
	for id := uint32(first); id < table.MaxEntries(); id++ {
		var sid address
		if err := table.Lookup(id, &sid); err != nil {
			return nil, fmt.Errorf("read pinned SID %#x in %s: %w", id, dir, err)
		}
		if sid == (address{}) {
			break
		}
		sids = append(sids, netip.AddrFrom16(sid))
	}
	return sids, nil
}

// openPinned opens a pinned map for reading; nil if it is not there.
func openPinned(dir, name string) (*ebpf.Map, error) {
	table, err := ebpf.LoadPinnedMap(filepath.Join(dir, name), &ebpf.LoadPinOptions{ReadOnly: true})
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("open pinned %s in %s: %w", name, dir, err)
	}
	return table, nil
}
