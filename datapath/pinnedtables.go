package datapath

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"sextant/lb/pool"
)

// PinnedTables are the tables that an earlier agent left, from which the next one resumes, so that
// no bucket moves because of a restart. Its methods may be called at the same time. Close it.
type PinnedTables struct {
	dir    string
	tables *ebpf.Map // nil: there are none
}

// MarkedChains are the chains of a service as they were found, and the mark that they were made
// with; the zero value: there are none.
type MarkedChains struct {
	Chains []pool.Chain
	Mark   pool.Mark
}

// OpenPinnedTables opens what is pinned in dir. Nothing pinned: no service has chains.
func OpenPinnedTables(dir string) (*PinnedTables, error) {
	tables, err := ebpf.LoadPinnedMap(filepath.Join(dir, "tables"), nil)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("open pinned tables in %s: %w", dir, err)
	}
	return &PinnedTables{dir, tables}, nil
}

// Close releases what was opened; what is pinned stays.
func (p *PinnedTables) Close() {
	if p.tables != nil {
		p.tables.Close()
	}
}

// Chains reads the chains of the service of index.
func (p *PinnedTables) Chains(index uint32) (MarkedChains, error) {
	if p.tables == nil {
		return MarkedChains{}, nil
	}
	return p.read(index)
}

// PinnedChains reads the chains of one service that is pinned in dir; nil if there are none.
func PinnedChains(dir string, index uint32) ([]pool.Chain, error) {
	p, err := OpenPinnedTables(dir)
	if err != nil {
		return nil, err
	}
	defer p.Close()
	found, err := p.Chains(index)
	return found.Chains, err
}

// FormerChains reads those of its former table.
func (p *PinnedTables) FormerChains(index uint32) ([]pool.Chain, error) {
	if p.tables == nil {
		return nil, nil
	}
	former, err := p.read(formerTable(p.tables, index))
	return former.Chains, err
}

func (p *PinnedTables) read(place uint32) (MarkedChains, error) {
	var table *ebpf.Map
	if err := p.tables.Lookup(place, &table); errors.Is(err, ebpf.ErrKeyNotExist) {
		return MarkedChains{}, nil
	} else if err != nil {
		return MarkedChains{}, fmt.Errorf("open pinned chains %d in %s: %w", place, p.dir, err)
	}
	defer table.Close()
	chains, err := readChains(table)
	return MarkedChains{chains, markIn(table)}, err
}

func readChains(table *ebpf.Map) ([]pool.Chain, error) {
	memory, err := mapChains(table, unix.PROT_READ)
	if err != nil {
		return nil, err
	}
	defer unix.Munmap(memory)
	wire := chainsIn(memory)
	chains := make([]pool.Chain, len(wire), pool.WholePages(len(wire)))
	for b, c := range wire {
		chains[b].Length, chains[b].Candidates, chains[b].Shadow = c.Length, c.Candidates,
			fromBigEndian(c.Shadow)
		for i, id := range c.IDs {
			chains[b].IDs[i] = fromBigEndian(id)
		}
	}
	return chains, nil
}

// tableName is what the kernel calls a table whose chains have a past; behind markPrefix the name
// of another one has the mark that its chains were made with, which never change. So mark and
// chains are one object, whatever happens to an agent.
const (
	tableName  = "chains"
	markPrefix = "m_"
	markBase   = 32 // in which 64 bits take 13 of the 15 octets of a name
)

func nameOfTable(mark pool.Mark) string {
	if mark == 0 {
		return tableName
	}
	return markPrefix + strconv.FormatUint(uint64(mark), markBase)
}

// markIn reads the mark in a table's name; 0: it has none.
func markIn(table *ebpf.Map) pool.Mark {
	_, name, _ := strings.Cut(table.String(), "(") // Array(NAME)#FD
	name, _, _ = strings.Cut(name, ")")
	digits, marked := strings.CutPrefix(name, markPrefix)
	mark, err := strconv.ParseUint(digits, markBase, 64)
	if !marked || err != nil {
		return 0
	}
	return pool.Mark(mark)
}

// compareChains sees that the tables of services have their chains.
func (e *Edge) compareChains(all []ServiceChains) error {
	for _, s := range all {
		if err := e.takeChains(s); err != nil {
			return fmt.Errorf("take over chains of service %d: %w", s.Index, err)
		}
	}
	return nil
}

func (e *Edge) takeChains(s ServiceChains) error {
	var table *ebpf.Map
	if err := e.maps["tables"].Lookup(s.Index, &table); err != nil {
		return errors.Join(ErrDiffers, err)
	}
	kept := false
	defer func() {
		if !kept {
			table.Close()
		}
	}()
	if int(table.MaxEntries()) != s.Generation.Buckets() {
		return ErrDiffers
	}
	// Who has the mark was made of a table with it, by [PinnedTables.Chains].
	if mark := s.Generation.Mark(); mark == 0 || mark != markIn(table) {
		chains, err := readChains(table)
		if err != nil {
			return err
		}
		for b, c := range chains {
			if c != s.Generation.Chain(b) {
				return ErrDiffers
			}
		}
	}
	e.chains[s.Index] = e.newPair()
	if s.Generation.Buckets() >= largeTable {
		memory, err := mapChains(table, unix.PROT_READ|unix.PROT_WRITE)
		if err != nil {
			return err
		}
		kept = true
		if err := e.chains[s.Index].adopt(&chainTable{table, memory, s.Generation}); err != nil {
			return err
		}
	}
	return e.find("tables", s.Index)
}
