package agent

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"sextant/agent/api"
	"sextant/agent/health"
	"sextant/agent/httpserver"
	"sextant/config"
	"sextant/datapath"
	"sextant/lb/discovery"
	"sextant/packet/flow"
	"sextant/packet/srv6"
)

// store keeps on disk what a restart must find again: the configuration with the changes made at
// run time, and the numbers under which services and backends are known in the kernel's tables.
type store struct {
	path    string
	lock    *os.File // nil: the disk takes no lock
	kept    kept
	written []byte // what is on the disk; nil: not known
	damage  string // what of an earlier agent's state could not be read; ""
	failure error  // why what is kept is not on the disk; nil: it is
	failed  time.Time
	history *history
	undone  bool // the start has undone what was not confirmed in time
	// text and fingerprint are those of node, which was asked for last: a large one takes a while.
	text, fingerprint string
	node              *config.Node
}

// kept is the content of the state file.
type kept struct {
	// File is the fingerprint of the node file that Node began with: as long as the file stays the
	// same, Node is what runs.
	File string `json:"file"`
	Node string `json:"node"` // YAML
	// Secret is a mark by which another secret is known, and nothing else.
	Secret string `json:"secret,omitempty"`
	// Numbers of services in the tables of edge and host, by endpoint, and ids of SIDs that have
	// none of their own.
	EdgeServices map[string]uint32 `json:"edgeServices"`
	HostServices map[string]uint32 `json:"hostServices"`
	SIDs         map[string]uint16 `json:"sids"`
	// Learned are the backends that BGP told of, who hold until it can tell again.
	Learned []discovery.Member `json:"learned,omitempty"`
	// Failing are the backends whose health checks failed last.
	Failing []health.Key `json:"failing,omitempty"`
	// Policies are the numbers of SR policies and of their segment lists, by name.
	Policies map[string]policyNumbers `json:"policies,omitempty"`
	// Steered is what traffic policies had, by name.
	Steered map[string]*steered `json:"steered,omitempty"`
	// Computed are the policies that no file has.
	Computed computed `json:"computed,omitzero"`
	// ListsDown are the segment lists that were found not to carry packets.
	ListsDown []listKey `json:"listsDown,omitempty"`
	// Epoch of the numbers that the head-end gave last; nil: it gave none yet.
	Epoch *uint8 `json:"epoch,omitempty"`
	// Numbers are those with which policies go on in that epoch after the node was unloaded, by
	// index.
	Numbers map[uint32]uint64 `json:"numbers,omitempty"`
	// Merges are the numbers of protected flows in the tables of the egress.
	Merges []mergeNumber `json:"merges,omitempty"`
	// Tables are those of the kernel that were written.
	Tables []int `json:"tables,omitempty"`
	// Away are the backends that are down, or back a moment ago and held.
	Away []health.Key `json:"away,omitempty"`
	// Unconfirmed is how to undo what runs; nil: it needs no confirmation.
	Unconfirmed *unconfirmed `json:"unconfirmed,omitempty"`
	// Former is what the edge knows of flows from before another secret or fewer buckets.
	Former *keptFormer `json:"former,omitempty"`
}

func (k kept) clone() kept {
	k.EdgeServices, k.HostServices, k.SIDs = maps.Clone(k.EdgeServices), maps.Clone(k.HostServices),
		maps.Clone(k.SIDs)
	return k
}

// openStore locks the node's state against a second agent, and reads it. A disk that is full or
// broken, or a file that is damaged, is no reason not to run: see store.warning.
func openStore(dir, node string, log *slog.Logger) (*store, error) {
	s := &store{path: filepath.Join(dir, node+".json"),
		history: openHistory(filepath.Join(dir, node+".history"))}
	if err := os.MkdirAll(dir, 0o700); diskFault(err) {
		s.fail(err)
	} else if err != nil {
		return nil, fmt.Errorf("create state directory: %w; name another one as state in the "+
			"node file", err)
	}
	if err := s.acquire(filepath.Join(dir, node+".lock")); err != nil {
		return nil, err
	}
	text, err := os.ReadFile(s.path)
	if err == nil {
		if s.kept, err = parseKept(text); err == nil {
			s.written = text
		}
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		s.putAside(err, log)
	}
	for _, m := range []*map[string]uint32{&s.kept.EdgeServices, &s.kept.HostServices} {
		if *m == nil {
			*m = map[string]uint32{}
		}
	}
	if s.kept.SIDs == nil {
		s.kept.SIDs = map[string]uint16{}
	}
	return s, nil
}

// dyingTime is how long an agent that was killed may take to be gone: the kernel frees its tables
// before its lock.
const dyingTime = 5 * time.Second

// diskFault says whether a disk is full or broken, as opposed to a path that can't be right.
func diskFault(err error) bool {
	for _, fault := range []error{unix.ENOSPC, unix.EDQUOT, unix.EROFS, unix.EIO} {
		if errors.Is(err, fault) {
			return true
		}
	}
	return false
}

// parseKept reads a state file, and refuses numbers that no agent gave.
func parseKept(text []byte) (k kept, err error) {
	if err := json.Unmarshal(text, &k); err != nil {
		return kept{}, err
	}
	for _, numbers := range []map[string]uint32{k.EdgeServices, k.HostServices} {
		owner := map[uint32]string{}
		for endpoint, n := range numbers {
			if owner[n] != "" || n == 0 || n >= datapath.MaxServices {
				return kept{}, fmt.Errorf("%s has the number %d, which is of another or of none",
					endpoint, n)
			}
			owner[n] = endpoint
		}
	}
	owner := map[uint16]string{}
	for text, id := range k.SIDs {
		sid, err := netip.ParseAddr(text)
		if err != nil || sid.String() != text || owner[id] != "" ||
			srv6.CSID(id) <= srv6.MaxGlobalCSID {
			return kept{}, fmt.Errorf("%q has the id %#x, which is of another or of none", text, id)
		}
		owner[id] = text
	}
	return k, nil
}

// putAside keeps a file that can't be used where nothing overwrites it.
func (s *store) putAside(why error, log *slog.Logger) {
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

func (s *store) acquire(path string) error {
	lock, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if diskFault(err) {
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

// resume returns the configuration to run: the node file, or what the last agent made of it if the
// file has not changed since.
func (s *store) resume(file *config.Node, log *slog.Logger) (*config.Node, error) {
	fingerprint, err := s.fingerprintOf(file)
	if err != nil {
		return nil, err
	}
	upgraded := false
	if fingerprint != s.kept.File && s.kept.File != "" {
		former, err := formerFingerprint(file)
		if err != nil {
			return nil, err
		}
		upgraded = former == s.kept.File
	}
	if fingerprint != s.kept.File && !upgraded {
		s.kept.Computed, s.kept.ListsDown, s.kept.Unconfirmed = computed{}, nil, nil
		return file, nil
	}
	if u := s.kept.Unconfirmed; u != nil && !time.Now().Before(u.Until) {
		log.Warn("the configuration that ran is undone: no confirmation came in time")
		s.kept.Node, s.kept.Unconfirmed, s.undone = u.Node, nil, true
	}
	node, err := config.ParseOwn(s.path, []byte(s.kept.Node))
	if err == nil && node.Name != file.Name {
		err = fmt.Errorf("it is of node %s", node.Name)
	}
	if err != nil {
		s.putAside(err, log)
		s.kept.Node, s.kept.Computed, s.kept.ListsDown, s.written = "", computed{}, nil, nil
		return file, nil
	}
	if upgraded && node.Edge != nil && node.Edge.Buckets == config.FormerBuckets {
		node.Edge.Buckets = 0 // the former version wrote its default down
	}
	node.Secret = file.Secret
	return node, api.ReadKeys(node)
}

// look makes the text and the fingerprint those of a node, which does not change.
func (s *store) look(n *config.Node) error {
	if n == s.node {
		return nil
	}
	text, err := config.Marshal(n)
	if err == nil {
		s.node, s.text, s.fingerprint = n, string(text), config.FingerprintOf(n, text)
	}
	return err
}

func (s *store) fingerprintOf(n *config.Node) (string, error) {
	err := s.look(n)
	return s.fingerprint, err
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

// save writes the state in one step. File is the node file that runs, nil for a change made to what
// runs.
func (s *store) save(file, node *config.Node) error {
	if file != nil {
		fingerprint, err := s.fingerprintOf(file)
		if err != nil {
			return err
		}
		s.kept.File = fingerprint
	}
	if err := s.look(node); err != nil {
		return err
	}
	s.kept.Node, s.kept.Secret = s.text, secretMark(node.Secret)
	return s.write()
}

// secretMark is the same for the same secret. The secret does not follow from it.
func secretMark(secret flow.Secret) string {
	return fmt.Sprintf("%016x", flow.SipHash13(secret, []byte("mark of the secret")))
}

// earlier returns the node that an earlier agent ran, nil if there is none that can be read.
func (s *store) earlier() *config.Node {
	if s.kept.Node == "" {
		return nil
	}
	node, err := config.ParseOwn(s.path, []byte(s.kept.Node))
	if err != nil {
		return nil
	}
	return node
}

// write writes the state as it is, if the disk has another one. If it fails, retry tries again.
func (s *store) write() error {
	data, err := json.MarshalIndent(s.kept, "", "  ")
	if err != nil {
		return err
	}
	if s.failure == nil && bytes.Equal(data, s.written) && exists(s.path) {
		return nil
	}
	err = os.MkdirAll(filepath.Dir(s.path), 0o700)
	if err == nil {
		err = writeFile(s.path, data)
	}
	if err != nil {
		s.fail(err)
		return fmt.Errorf("save state: %w", err)
	}
	s.written, s.failure = data, nil
	return nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func (s *store) fail(err error) {
	s.failure, s.failed, s.written = err, time.Now(), nil
}

// storeRetry is how long after a failure the disk is tried again.
const storeRetry = 5 * time.Second

// retry writes what could not be written.
func (s *store) retry(log *slog.Logger) {
	if s.failure == nil || time.Since(s.failed) < storeRetry {
		return
	}
	if err := s.write(); err == nil {
		log.Info("changes are kept on the disk again", "file", s.path)
	}
}

// warnings are for the status: what a restart will not find, or what this start did not.
func (s *store) warnings() (list []string) {
	if s.damage != "" {
		list = append(list, s.damage)
	}
	if s.failure != nil {
		list = append(list, fmt.Sprintf("changes can't be kept on disk, a restart would not have "+
			"them: %v; make room in %s or mend its disk", s.failure, filepath.Dir(s.path)))
	}
	return list
}

// writeFile replaces a file so that after a crash the old or the new one is there, whole.
func writeFile(path string, data []byte) error {
	fresh, err := os.OpenFile(path+"~", os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = fresh.Write(data)
	err = errors.Join(err, fresh.Sync(), fresh.Close())
	if err != nil {
		_ = os.Remove(path + "~") // it takes room on a disk that has none
		return err
	}
	if err := os.Rename(path+"~", path); err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

func (s *store) close() {
	if s.lock != nil {
		s.lock.Close()
	}
}
