package agent_test

import (
	"encoding/binary"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cilium/ebpf"

	"sextant/agent/api"
	"sextant/config"
	"sextant/datapath"
)

// objects are the numbers of a role's pinned tables, and of its programs, by file name.
func (m *machine) objects(role string) map[string][2]uint32 {
	m.t.Helper()
	pins, err := datapath.DescribePins(m.pins)
	must(m.t, err)
	numbers := map[string][2]uint32{}
	for _, p := range pins {
		if filepath.Base(filepath.Dir(p.Path)) == role {
			numbers[filepath.Base(p.Path)] = [2]uint32{p.ID, p.ProgramID}
		}
	}
	if len(numbers) < 10 {
		m.t.Fatalf("the %s has the pins %v", role, slices.Collect(maps.Keys(numbers)))
	}
	return numbers
}

// wantTaken sees whether an agent took over what the one before had loaded for a role.
func wantTaken(t *testing.T, role string, taken bool, before, after map[string][2]uint32) {
	t.Helper()
	for name, numbers := range before {
		isProgram := strings.HasPrefix(name, "link_")
		if same := numbers == after[name]; same != taken && (taken || isProgram) {
			t.Errorf("%s of the %s: objects %v before and %v after; want the same: %v", name, role,
				numbers, after[name], taken)
		}
	}
}

// TestRestartTakesProgramsOver: an agent that starts with what runs loads nothing, and works on
// what it took over.
func TestRestartTakesProgramsOver(t *testing.T) {
	m := newMachine(t)
	m.ip("link set lo up\naddr add 2001:db8:80::81/128 dev lo nodad")
	r := m.start(nodeText)
	edge, host, tables := m.objects("edge"), m.objects("host"), m.state()
	for range 2 {
		r.stop()
		r = m.start(nodeText)
		wantTaken(t, "edge", true, edge, m.objects("edge"))
		wantTaken(t, "host", true, host, m.objects("host"))
	}
	if after := m.state(); !slices.Equal(after, tables) {
		t.Errorf("the kernel has\n%s\nwant\n%s", strings.Join(after, "\n"),
			strings.Join(tables, "\n"))
	}
	status, err := r.Status(t.Context())
	must(t, err)
	if len(status.Warnings) > 0 {
		t.Errorf("warnings: %v", status.Warnings)
	}
	// What was changed at run time is taken over, too: chains with a past.
	state := config.Draining
	_, err = r.PutBackend(t.Context(), api.Update, "web", "web2", api.BackendSpec{State: &state})
	must(t, err)
	chains := m.chainsOf(1)
	r.stop()
	r = m.start(nodeText)
	wantTaken(t, "edge", true, edge, m.objects("edge"))
	wantChains(t, m.chainsOf(1), chains)
	_, err = r.DeleteService(t.Context(), "web", api.Edge)
	must(t, err)
	if numbers, err := datapath.PinnedServices(filepath.Join(m.pins, "edge")); err != nil ||
		len(numbers) != 1 {
		t.Errorf("after one of two services was deleted the edge has %v, %v", numbers, err)
	}
	r.stop()
}

// TestRestartLoadsWhatDiffers: what is not exactly as it should be is loaded anew, each role on its
// own.
func TestRestartLoadsWhatDiffers(t *testing.T) {
	edgePin := func(m *machine, name string) *ebpf.Map {
		table, err := ebpf.LoadPinnedMap(filepath.Join(m.pins, "edge", name), nil)
		must(m.t, err)
		m.t.Cleanup(func() { table.Close() })
		return table
	}
	for _, c := range []struct {
		name string
		text [2]string // replaced in the node file
		edit func(m *machine)
	}{
		{name: "a constant", text: [2]string{"source: fd00:5e::e1",
			"source: fd00:5e::e1\n  hopLimit: 33"}},
		{name: "a service more", text: [2]string{"host:\n",
			"    - {name: more, vip: 192.0.2.54, port: 53, backends: []}\nhost:\n"}},
		{name: "damaged notes", edit: func(m *machine) {
			notes := edgePin(m, "loaded")
			text, err := notes.LookupBytes(uint32(0))
			must(m.t, err)
			must(m.t, notes.Put(uint32(0), slices.Concat([]byte("{"), text[1:])))
		}},
		{name: "notes of other programs", edit: func(m *machine) {
			notes := edgePin(m, "loaded")
			text, err := notes.LookupBytes(uint32(0))
			must(m.t, err)
			other := strings.Replace(string(text), `"tag":"`, `"tag":"0`, 1)
			must(m.t, notes.Put(uint32(0), []byte(other[:len(text)])))
		}},
		{name: "no notes", edit: func(m *machine) {
			must(m.t, edgePin(m, "loaded").Unpin())
		}},
		{name: "a table that is another one", edit: func(m *machine) {
			drops := edgePin(m, "drops")
			info, err := drops.Info()
			must(m.t, err)
			fresh, err := ebpf.NewMap(&ebpf.MapSpec{Type: info.Type, KeySize: info.KeySize,
				ValueSize: info.ValueSize, MaxEntries: info.MaxEntries})
			must(m.t, err)
			defer fresh.Close()
			must(m.t, drops.Unpin())
			must(m.t, fresh.Pin(filepath.Join(m.pins, "edge", "drops")))
		}},
		{name: "an entry less", edit: func(m *machine) {
			services := edgePin(m, "services")
			key, err := services.NextKeyBytes(nil)
			must(m.t, err)
			must(m.t, services.Delete(key))
		}},
		{name: "an entry more", edit: func(m *machine) {
			services := edgePin(m, "services")
			key, err := services.NextKeyBytes(nil)
			must(m.t, err)
			value, err := services.LookupBytes(key)
			must(m.t, err)
			key[3] ^= 0xff
			must(m.t, services.Put(key, value))
		}},
		{name: "another SID", edit: func(m *machine) {
			must(m.t, edgePin(m, "sids").Put(uint32(2), [16]byte{0xfc}))
		}},
		{name: "another table", edit: func(m *machine) {
			services := edgePin(m, "services")
			keys, entries := map[uint32][]byte{}, map[uint32][]byte{}
			var key, entry []byte
			for all := services.Iterate(); all.Next(&key, &entry); {
				index := binary.NativeEndian.Uint32(entry)
				keys[index], entries[index] = slices.Clone(key), slices.Clone(entry)
			}
			copy(entries[1][4:], entries[2][4:]) // all but its number
			must(m.t, services.Put(keys[1], entries[1]))
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := newMachine(t)
			m.start(nodeText).stop()
			edge, host := m.objects("edge"), m.objects("host")
			if c.edit != nil {
				c.edit(m)
			}
			text := strings.Replace(nodeText, c.text[0], c.text[1], 1)
			r := m.start(text)
			wantTaken(t, "edge", false, edge, m.objects("edge"))
			wantTaken(t, "host", true, host, m.objects("host"))
			services := 2 + strings.Count(text, "name: more")
			numbers, err := datapath.PinnedServices(filepath.Join(m.pins, "edge"))
			must(t, err)
			if len(numbers) != services {
				t.Errorf("the edge has the services %v, want %d", numbers, services)
			}
			for id, sid := range map[uint32]uint16{1: 1, 2: 2} {
				var got [16]byte
				must(t, edgePin(m, "sids").Lookup(id, &got))
				if binary.BigEndian.Uint16(got[4:]) != sid {
					t.Errorf("the SID of id %d is %x", id, got)
				}
			}
			edge = m.objects("edge")
			r.stop()
			m.start(text).stop()
			wantTaken(t, "edge", true, edge, m.objects("edge"))
		})
	}
}
