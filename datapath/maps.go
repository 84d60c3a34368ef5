package datapath

import (
	"errors"
	"slices"
	"unsafe"

	"github.com/cilium/ebpf"
)

// perCPU tells maps of which each CPU has a copy.
func perCPU(t ebpf.MapType) bool {
	return slices.Contains([]ebpf.MapType{ebpf.PerCPUArray, ebpf.PerCPUHash, ebpf.LRUCPUHash}, t)
}

// addWords adds counters that consist of 64-bit words and nothing else.
func addWords[T any](total *T, v T) {
	sum := unsafe.Slice((*uint64)(unsafe.Pointer(total)), unsafe.Sizeof(v)/8)
	for i, word := range unsafe.Slice((*uint64)(unsafe.Pointer(&v)), len(sum)) {
		sum[i] += word
	}
}

// sumPerCPU adds up one entry of a per-CPU array.
func sumPerCPU[S, T any](m *ebpf.Map, index uint32, add func(total *S, v T)) (S, error) {
	var total S
	var values []T
	if err := m.Lookup(index, &values); err != nil {
		return total, err
	}
	for _, v := range values {
		add(&total, v)
	}
	return total, nil
}

// allPerCPU reads an array per CPU in one request: the copies of the first entry, then those of the
// second.
func allPerCPU[T any](m *ebpf.Map) ([]T, error) {
	cpus, err := ebpf.PossibleCPU()
	if err != nil {
		return nil, err
	}
	var cursor ebpf.MapBatchCursor
	entries := int(m.MaxEntries())
	values := make([]T, entries*cpus)
	if _, err := m.BatchLookup(&cursor, make([]uint32, entries), values, nil); err != nil &&
		!errors.Is(err, ebpf.ErrKeyNotExist) {
		return nil, err
	}
	return values, nil
}

// batchSize is how many entries of an array are read in one request.
const batchSize = 4096

// eachBatch reads all entries of an array, many at once.
func eachBatch[T any](m *ebpf.Map, do func(keys []uint32, values []T) error) error {
	var cursor ebpf.MapBatchCursor
	keys, values := make([]uint32, batchSize), make([]T, batchSize)
	for {
		n, err := m.BatchLookup(&cursor, keys, values, nil)
		if err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
			return err
		}
		if doErr := do(keys[:n], values[:n]); doErr != nil || err != nil {
			return doErr
		}
	}
}

// replace makes what a map holds after what it held before.
func replace[K, V comparable](m *ebpf.Map, before, after map[K]V) error {
	for key, value := range after {
		if old, ok := before[key]; ok && old == value {
			continue
		}
		if err := m.Put(key, value); err != nil {
			return err
		}
	}
	for key := range before {
		if _, ok := after[key]; ok {
			continue
		}
		if err := m.Delete(key); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
			return err
		}
	}
	return nil
}
