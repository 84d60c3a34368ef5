package datapath

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
)

// Entry is one of a map, in words: structures are maps by field name, addresses and numbers in
// network order are readable.
type Entry struct {
	Key   any `json:"key"`
	Value any `json:"value"`
	CPU   int `json:"cpu"` // whose copy it is; -1: there is one for all
}

// ErrNoMap says that there is no map of a name.
var ErrNoMap = errors.New("no such map")

// Dump reads at most limit entries of a map. Entries of arrays that are all zero are left out. Of
// the chains ("tables"), the key is service and bucket; of paths, service and id of the backend.
func (e *Edge) Dump(name string, limit int) ([]Entry, error) {
	switch name {
	case "paths":
		return e.dumpPaths(limit)
	case "tables":
		return e.dumpTables(limit)
	}
	return e.collection.Dump(name, limit)
}

// secretMaps hold keys: those of QUIC-LB, of HMACs, and of controllers' datagrams to a head-end.
var secretMaps = []string{"quic_configs", "hmac_keys", "hmac_scratches", "change_streams"}

// Dump reads at most limit entries of a map. Entries of arrays that are all zero are left out.
func (c *collection) Dump(name string, limit int) ([]Entry, error) {
	spec, err := c.object()
	if err != nil {
		return nil, err
	}
	m, known := c.maps[name]
	shape := spec.Maps[name]
	if !known || shape == nil {
		return nil, fmt.Errorf("dump %s: %w", name, ErrNoMap)
	}
	d := dumper{limit: limit, key: shape.Key, value: shape.Value}
	switch {
	case m.Type() == ebpf.ArrayOfMaps:
		return nil, fmt.Errorf("dump %s: it holds maps: %w", name, ErrNoMap)
	case slices.Contains(secretMaps, name):
		return nil, fmt.Errorf("dump %s: it holds keys, which are secret: %w", name, ErrNoMap)
	case m.Type() == ebpf.RingBuf:
		return nil, fmt.Errorf("dump %s: a ring buffer has no entries: %w", name, ErrNoMap)
	case m.Type() == ebpf.SkStorage:
		return nil, fmt.Errorf("dump %s: sockets have its entries, and the kernel lists none: %w",
			name, ErrNoMap)
	default:
		err = d.entries(m)
	}
	if err != nil {
		return nil, fmt.Errorf("dump %s: %w", name, err)
	}
	return d.list, nil
}

// dumper reads entries until there are enough.
type dumper struct {
	limit      int
	key, value btf.Type
	list       []Entry
}

// entries reads those of a map.
func (d *dumper) entries(m *ebpf.Map) error {
	array := m.Type() == ebpf.Array || m.Type() == ebpf.PerCPUArray
	key, raw := []byte(nil), make([]byte, m.ValueSize())
	var values [][]byte
	var target any = &raw
	if perCPU(m.Type()) {
		target = &values
	}
	for entries := m.Iterate(); len(d.list) < d.limit; {
		if !entries.Next(&key, target) {
			return entries.Err()
		}
		copies := values
		if !perCPU(m.Type()) {
			copies = [][]byte{raw}
		}
		for cpu, value := range copies {
			if array && isZero(value) || len(d.list) == d.limit {
				continue
			}
			e := Entry{Key: inWords(d.key, key), Value: inWords(d.value, value), CPU: cpu}
			if !perCPU(m.Type()) {
				e.CPU = -1
			}
			d.list = append(d.list, e)
		}
	}
	return nil
}

// dumpTables reads at most limit chains of services, those of former tables behind the others.
func (e *Edge) dumpTables(limit int) (list []Entry, err error) {
	value, err := edgeType[*btf.Struct]("chain")
	if err != nil {
		return nil, err
	}
	for _, number := range slices.Sorted(maps.Keys(e.chains)) {
		t := e.live(number)
		if t == nil {
			continue
		}
		for bucket, c := range t.chains() {
			if len(list) == limit {
				return list, nil
			}
			if c == (chain{}) {
				continue
			}
			raw, err := binary.Append(nil, binary.NativeEndian, c)
			if err != nil {
				return nil, err
			}
			key := map[string]any{"service": number % formerTables, "bucket": bucket}
			if number >= formerTables {
				key["former"] = true
			}
			list = append(list, Entry{Key: key, Value: inWords(value, raw), CPU: -1})
		}
	}
	return list, nil
}

// dumpPaths reads at most limit paths that services name.
func (e *Edge) dumpPaths(limit int) (list []Entry, err error) {
	path, err := edgeType[*btf.Struct]("path")
	if err != nil {
		return nil, err
	}
	for at, entry := range e.paths.all() {
		raw, err := binary.Append(nil, binary.NativeEndian, entry)
		if err != nil || len(list) == limit {
			return list, err
		}
		value := inWords(path, raw).(map[string]any)
		delete(value, "owner") // the key says it
		delete(value, "away")
		list = append(list, Entry{Key: map[string]any{"service": at.service,
			"backend": at.backend, "choice": at.choice}, Value: value, CPU: -1})
	}
	return list, nil
}

func isZero(value []byte) bool {
	return !slices.ContainsFunc(value, func(b byte) bool { return b != 0 })
}

// inWords reads bytes by their C type. What has no type is hexadecimal, or a number if it could be
// one.
func inWords(t btf.Type, raw []byte) any {
	if t == nil {
		if len(raw) == 4 {
			return binary.NativeEndian.Uint32(raw)
		}
		return hex.EncodeToString(raw)
	}
	if named, ok := t.(*btf.Typedef); ok && strings.HasPrefix(named.Name, "__be") {
		return bigEndianNumber(raw)
	}
	switch u := btf.UnderlyingType(t).(type) {
	case *btf.Int:
		return numberOf(u, raw)
	case *btf.Enum:
		return enumWord(u, raw)
	case *btf.Array:
		return arrayOf(u, raw)
	case *btf.Struct:
		if u.Name == "address" && len(raw) == 16 {
			return netip.AddrFrom16([16]byte(raw)).Unmap().String()
		}
		fields := map[string]any{}
		for _, m := range u.Members {
			size, err := btf.Sizeof(m.Type)
			at := int(m.Offset.Bytes())
			if err == nil && m.BitfieldSize == 0 && at+size <= len(raw) && m.Name != "reserved" {
				fields[m.Name] = inWords(m.Type, raw[at:at+size])
			}
		}
		return fields
	}
	return hex.EncodeToString(raw)
}

func bigEndianNumber(raw []byte) uint64 {
	var n uint64
	for _, b := range raw {
		n = n<<8 | uint64(b)
	}
	return n
}

func numberOf(t *btf.Int, raw []byte) any {
	var n uint64
	switch len(raw) {
	case 1:
		n = uint64(raw[0])
	case 2:
		n = uint64(binary.NativeEndian.Uint16(raw))
	case 4:
		n = uint64(binary.NativeEndian.Uint32(raw))
	case 8:
		n = binary.NativeEndian.Uint64(raw)
	default:
		return hex.EncodeToString(raw)
	}
	if t.Encoding == btf.Signed {
		shift := 64 - 8*len(raw)
		return int64(n<<shift) >> shift
	}
	return n
}

func enumWord(t *btf.Enum, raw []byte) any {
	n := numberOf(&btf.Int{Size: t.Size}, raw)
	for _, v := range t.Values {
		if v.Value == n {
			return v.Name
		}
	}
	return n
}

func arrayOf(t *btf.Array, raw []byte) any {
	size, err := btf.Sizeof(t.Type)
	if err != nil || size == 0 || size == 1 {
		return hex.EncodeToString(raw)
	}
	list := []any{}
	for at := 0; at+size <= len(raw); at += size {
		list = append(list, inWords(t.Type, raw[at:at+size]))
	}
	return list
}
