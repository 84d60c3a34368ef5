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

// PinnedSIDs reads the SIDs that an earlier agent left in dir, by their ids; none if it left
// nothing.
func PinnedSIDs(dir string) (map[uint16]netip.Addr, error) {
	table, err := openPinned(dir, "sids")
	if table == nil {
		return nil, err
	}
	defer table.Close()
	ids := make([]uint32, table.MaxEntries())
	all := make([]address, table.MaxEntries())
	n, err := table.BatchLookup(new(ebpf.MapBatchCursor), ids, all, nil)
	if err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) { // the end of the table
		return nil, fmt.Errorf("read pinned SIDs in %s: %w", dir, err)
	}
	sids := map[uint16]netip.Addr{}
	for i, id := range ids[:n] {
		if all[i] != (address{}) {
			sids[uint16(id)] = netip.AddrFrom16(all[i])
		}
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
