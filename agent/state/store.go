// Package state keeps what a restart must find again: the configuration that runs, and the numbers
// by which the kernel's tables know things.
package state

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"sextant/agent/api"
	"sextant/agent/httpserver"
	"sextant/config"
	"sextant/datapath"
	"sextant/linux"
	"sextant/packet/flow"
)

// Store keeps on disk what a restart must find again: the configuration with the changes made at
// run time, and the numbers under which services and backends are known in the kernel's tables.
type Store struct {
	path    string
	lock    *os.File // nil: the disk takes no lock
	Kept    Kept
	written []byte // what is on the disk; nil: not known
	damage  string // what of an earlier agent's state could not be read; ""
	Failure error  // why what is kept is not on the disk; nil: it is
	failed  time.Time
	History *History
	texts   *texts
	Undone  bool // the start has undone what was not confirmed in time
	// Text and fingerprint are those of node, which was asked for last: a large one takes a while.
	Text, fingerprint string
	node              *config.Node
	writer            config.Writer
	earlier           *config.Node // that Kept.Node was when the agent began, if it was read
	// superseded is what was kept with an earlier node file, until this one runs: a start that is
	// refused leaves it on the disk. nil: nothing is
	superseded *Kept
	// Await waits for what takes long and touches nothing else; nil: the caller does it itself
	Await func(slow func() error) error
}

// Open locks the node's state against a second agent, and reads it. A disk that is full or
// broken, or a file that is damaged, is no reason not to run: see store.warning.
func Open(dir, node string, log *slog.Logger) (*Store, error) {
	large := &texts{dir: filepath.Join(dir, node+".texts")}
	s := &Store{path: filepath.Join(dir, node+".json"), texts: large}
	if err := os.MkdirAll(dir, 0o700); DiskFault(err) {
		s.fail(err)
	} else if err != nil {
		return nil, fmt.Errorf("create state directory: %w; name another one as state in the "+
			"node file", err)
	}
	if err := s.acquire(filepath.Join(dir, node+".lock")); err != nil {
		return nil, err
	}
	// an agent that was ending until now may have added to it
	s.History = openHistory(filepath.Join(dir, node+".history"), large)
	text, err := os.ReadFile(s.path)
	if err == nil {
		if s.Kept, err = ParseKept(text); err == nil {
			s.written = text
		}
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		s.putAside(err, log)
	}
	if err := s.texts.restoreKept(&s.Kept); err != nil {
		s.putAside(err, log) // the numbers are those that the kernel's tables have
		s.Kept.File, s.Kept.Text, s.Kept.Unconfirmed, s.written = "", Text{}, nil, nil
	}
	for _, m := range []*map[string]uint32{&s.Kept.EdgeServices, &s.Kept.HostServices} {
		if *m == nil {
			*m = map[string]uint32{}
		}
	}
	return s, nil
}

// dyingTime is how long an agent that was killed may take to be gone: the kernel frees its tables
// before its lock.
const dyingTime = 5 * time.Second

// DiskFault says whether a disk is full or broken, as opposed to a path that can't be right.
func DiskFault(err error) bool {
	for _, fault := range []error{unix.ENOSPC, unix.EDQUOT, unix.EROFS, unix.EIO} {
		if errors.Is(err, fault) {
			return true
		}
	}
	return false
}

// ParseKept reads a state file, and refuses numbers that no agent gave.
func ParseKept(text []byte) (k Kept, err error) {
	if err := json.Unmarshal(text, &k); err != nil {
		return Kept{}, err
	}
	for _, services := range []struct {
		numbers map[string]uint32
		most    uint32
	}{{k.EdgeServices, datapath.MaxServices}, {k.HostServices, datapath.MaxHostServices}} {
		given := map[uint32]bool{}
		for endpoint, n := range services.numbers {
			if given[n] || n == 0 || n >= services.most {
				return Kept{}, fmt.Errorf("%s has the number %d, which is of another or of none",
					endpoint, n)
			}
			given[n] = true
		}
	}
	return k, nil
}

// putAside keeps a file that can't be used where nothing overwrites it.
func (s *Store) putAside(why error, log *slog.Logger) {
	aside := fmt.Sprintf("%s.damaged-%s", s.path,
		time.Now().UTC().Format("20060102T150405.000000000"))
	s.damage = fmt.Sprintf("the state of an earlier agent is damaged (%v): changes that were "+
		"made at "+
		"run time are lost, and the node file is what runs; what is left of it is in %s", why,
		aside)
	if err := os.Rename(s.path, aside); err != nil {
		s.damage = fmt.Sprintf("the state of an earlier agent is damaged (%v): changes that were "+
			"made "+
			"at run time are lost, and the node file is what runs; it could not be kept aside: %v",
			why, httpserver.Cause(err))
	}
	log.Error(s.damage)
}

func (s *Store) acquire(path string) error {
	lock, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if DiskFault(err) {
		s.fail(err)
		if lock, err = os.Open(path); err != nil { // what is there can be locked all the same
			return nil // the API socket is a lock too
		}
	}
	if err != nil {
		return fmt.Errorf("lock state: %w", err)
	}
	err = unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	for end := time.Now().Add(dyingTime); errors.Is(err, unix.EWOULDBLOCK) &&
		time.Now().Before(end); {
		time.Sleep(dyingTime / 100)
		err = unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	}
	if err != nil {
		lock.Close()
		return fmt.Errorf("lock %s: another agent of this node runs; stop it first, its packets "+
			"are forwarded on meanwhile", path)
	}
	s.lock = lock
	return nil
}

// Resume returns the configuration to run: the node file, or what the last agent made of it if the
// file has not changed since that agent began, or since it was applied.
func (s *Store) Resume(file *config.Node, log *slog.Logger) (*config.Node, error) {
	fingerprint, err := s.FingerprintOf(file)
	if err != nil {
		return nil, err
	}
	upgraded := false
	if fingerprint != s.Kept.File && s.Kept.File != "" {
		former, err := formerFingerprint(file)
		if err != nil {
			return nil, err
		}
		upgraded = former == s.Kept.File
	}
	if fingerprint != s.Kept.File && fingerprint != s.Kept.Applied && !upgraded {
		earlier := s.Kept
		s.superseded = &earlier
		s.Kept.Computed, s.Kept.ListsDown = Computed{}, nil
		s.Kept.Unconfirmed = nil
		return file, nil
	}
	if u := s.Kept.Unconfirmed; u != nil {
		now := time.Now()
		if u.limit(now); !now.Before(u.Until) {
			log.Warn("the configuration that ran is undone: no confirmation came in time")
			s.Kept.Node, s.Kept.Unconfirmed, s.Undone = u.Node, nil, true
		}
	}
	if s.Kept.Node == s.Text && s.node == file {
		s.earlier = file // nothing was changed at run time
		return file, nil
	}
	node, err := s.Parse(s.path, s.Kept.Node)
	if err == nil && node.Name != file.Name {
		err = fmt.Errorf("it is of node %s", node.Name)
	}
	if err != nil {
		s.putAside(err, log)
		s.Kept.Node, s.Kept.Computed, s.Kept.ListsDown, s.written = "", Computed{}, nil, nil
		return file, nil
	}
	if upgraded && node.Edge != nil && node.Edge.Buckets == config.FormerBuckets {
		node.Edge.Buckets = 0 // the former version wrote its default down
	}
	if !upgraded {
		s.earlier = node
	}
	return node, api.ReadSecrets(node)
}

// Look makes the text and the fingerprint those of a node, which does not change.
func (s *Store) Look(n *config.Node) error {
	if n == s.node {
		return nil
	}
	var text, fingerprint string
	err := s.await(func() error {
		written, err := s.writer.Marshal(n)
		if err == nil {
			text = unsafe.String(unsafe.SliceData(written), len(written)) // nothing changes it
			fingerprint = config.FingerprintOf(n, written)
		}
		return err
	})
	if err == nil {
		s.node, s.Text, s.fingerprint = n, text, fingerprint
	}
	return err
}

// FingerprintOf is the mark by which another configuration is known.
func (s *Store) FingerprintOf(n *config.Node) (string, error) {
	err := s.Look(n)
	return s.fingerprint, err
}

// Parse reads a text of a node as this agent or an earlier one kept it, without its secrets that
// are in files. It shares with the node that was looked at last what both have.
func (s *Store) Parse(name, text string) (*config.Node, error) {
	return s.writer.Parse(name, []byte(text), s.node)
}

// formerFingerprint is what versions before services were sized by need took of a node file that
// names no number of buckets, so that an upgrade loses no change made at run time; "" otherwise.
func formerFingerprint(file *config.Node) (string, error) {
	if file.Edge == nil || file.Edge.Buckets != 0 {
		return "", nil
	}
	edge, node := *file.Edge, *file
	edge.Buckets, node.Edge = config.FormerBuckets, &edge
	return config.Fingerprint(&node)
}

// Save writes the state in one step. File is the node file that runs, nil for a change made to what
// runs.
func (s *Store) Save(file, node *config.Node) error {
	if file != nil {
		fingerprint, err := s.FingerprintOf(file)
		if err != nil {
			return err
		}
		s.Kept.File, s.Kept.Applied = fingerprint, ""
	}
	if err := s.Look(node); err != nil {
		return err
	}
	s.earlier, s.superseded = nil, nil
	s.Kept.Node, s.Kept.Secret = s.Text, HashMark(node.Secret, node.FlowHash)
	return s.Write()
}

// HashMark is the same for the same secret and flow hash. The secret does not follow from it.
func HashMark(secret flow.Secret, hash flow.Function) string {
	text := "mark of the secret" // and nothing behind it, as in state files from before flowHash
	if hash != flow.BySipHash {
		text += " " + hash.String()
	}
	return fmt.Sprintf("%016x", flow.SipHash13(secret, []byte(text)))
}

// Earlier returns the node that an earlier agent ran, nil if there is none that can be read. What
// it points to may be part of the node that runs.
func (s *Store) Earlier() *config.Node {
	switch {
	case s.Kept.Node == "":
		return nil
	case s.earlier != nil:
		earlier := *s.earlier
		return &earlier
	}
	node, err := s.Parse(s.path, s.Kept.Node)
	if err != nil {
		return nil
	}
	return node
}

// Write writes the state as it is, if the disk has another one. If it fails, retry tries again.
func (s *Store) Write() error {
	var data []byte
	kept, known := s.Kept, s.Failure == nil
	if e := s.superseded; e != nil {
		kept.Computed, kept.ListsDown, kept.Unconfirmed = e.Computed, e.ListsDown, e.Unconfirmed
	}
	err := s.await(func() (err error) {
		if kept, err = s.texts.shortenKept(kept); err != nil {
			return err
		}
		if data, err = json.Marshal(kept); err != nil ||
			known && bytes.Equal(data, s.written) && exists(s.path) {
			return err
		}
		if err = os.MkdirAll(filepath.Dir(s.path), 0o700); err == nil {
			err = WriteFile(s.path, data)
		}
		return err
	})
	if err != nil {
		s.fail(err)
		return fmt.Errorf("save state: %w", err)
	}
	s.written, s.Failure = data, nil
	return nil
}

// await does what takes long, such as waiting for the disk.
func (s *Store) await(slow func() error) error {
	if s.Await == nil {
		return slow()
	}
	return s.Await(slow)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func (s *Store) fail(err error) {
	s.Failure, s.failed, s.written = err, time.Now(), nil
}

// StoreRetry is how long after a failure the disk is tried again.
const StoreRetry = 5 * time.Second

// Retry writes what could not be written.
func (s *Store) Retry(log *slog.Logger) {
	if s.Failure == nil || time.Since(s.failed) < StoreRetry {
		return
	}
	if err := s.Write(); err == nil {
		log.Info("changes are kept on the disk again", "file", s.path)
	}
}

// Warnings are for the status: what a restart will not find, or what this start did not.
func (s *Store) Warnings() (list []string) {
	if s.damage != "" {
		list = append(list, s.damage)
	}
	if s.Failure != nil {
		list = append(list, fmt.Sprintf("changes can't be kept on disk, a restart would not have "+
			"them: %v; make room in %s or mend its disk", s.Failure, filepath.Dir(s.path)))
	}
	return list
}

// beforeWrite is asked before a file is written. Tests let processes die there.
var beforeWrite = func(path string) error { return nil }

// WriteFile is linux.WriteFile.
func WriteFile(path string, data []byte) error {
	if err := beforeWrite(path); err != nil {
		return err
	}
	return linux.WriteFile(path, data)
}

// Close lets another agent of the node begin.
func (s *Store) Close() {
	if s.lock != nil {
		s.lock.Close()
	}
}
