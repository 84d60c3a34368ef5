package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"sextant/agent/api"
	"sextant/config"
	"sextant/flow"
	"sextant/health"
	"sextant/membership"
)

// store keeps on disk what a restart must find again: the configuration with the changes made at run time, and the numbers
// under which services and backends are known in the kernel's tables.
type store struct {
	path string
	lock *os.File
	kept kept
}

// kept is the content of the state file.
type kept struct {
	// File is the fingerprint of the node file that Node began with: as long as the file stays the same, Node is what runs.
	File string `json:"file"`
	Node string `json:"node"` // YAML
	// Secret is a mark by which another secret is known, and nothing else.
	Secret string `json:"secret,omitempty"`
	// Numbers of services in the tables of edge and host, by endpoint, and ids of SIDs that have none of their own.
	EdgeServices map[string]uint32 `json:"edgeServices"`
	HostServices map[string]uint32 `json:"hostServices"`
	SIDs         map[string]uint16 `json:"sids"`
	// Learned are the backends that BGP told of, who hold until it can tell again.
	Learned []membership.Member `json:"learned,omitempty"`
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
	// Numbers are those with which policies go on in that epoch after the node was unloaded, by index.
	Numbers map[uint32]uint64 `json:"numbers,omitempty"`
	// Merges are the numbers of protected flows in the tables of the egress.
	Merges []mergeNumber `json:"merges,omitempty"`
	// Tables are those of the kernel that were written.
	Tables []int `json:"tables,omitempty"`
	// Away are the backends that are down, or back a moment ago and held.
	Away []health.Key `json:"away,omitempty"`
}

func (k kept) clone() kept {
	k.EdgeServices, k.HostServices, k.SIDs = maps.Clone(k.EdgeServices), maps.Clone(k.HostServices), maps.Clone(k.SIDs)
	return k
}

// openStore locks the node's state against a second agent, and reads it.
func openStore(dir, node string) (*store, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("create state directory: %w; name another one as state in the node file", err)
	}
	s := &store{path: filepath.Join(dir, node+".json")}
	if err := s.acquire(filepath.Join(dir, node+".lock")); err != nil {
		return nil, err
	}
	text, err := os.ReadFile(s.path)
	if err == nil {
		err = json.Unmarshal(text, &s.kept)
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		s.close()
		return nil, fmt.Errorf("read state %s: %w; remove the file to begin with the node file alone", s.path, err)
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

// dyingTime is how long an agent that was killed may take to be gone: the kernel frees its tables before its lock.
const dyingTime = 5 * time.Second

func (s *store) acquire(path string) error {
	lock, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("lock state: %w", err)
	}
	err = unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	for end := time.Now().Add(dyingTime); errors.Is(err, unix.EWOULDBLOCK) && time.Now().Before(end); {
		time.Sleep(dyingTime / 100)
		err = unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	}
	if err != nil {
		lock.Close()
		return fmt.Errorf("lock %s: another agent of this node runs; stop it first, its packets are forwarded on meanwhile", path)
	}
	s.lock = lock
	return nil
}

// resume returns the configuration to run: the node file, or what the last agent made of it if the file has not changed since.
func (s *store) resume(file *config.Node) (*config.Node, error) {
	fingerprint, err := config.Fingerprint(file)
	if err != nil {
		return nil, err
	}
	if fingerprint != s.kept.File {
		s.kept.Computed, s.kept.ListsDown = computed{}, nil
		return file, nil
	}
	node, err := config.Parse(s.path, []byte(s.kept.Node))
	if err != nil {
		return nil, fmt.Errorf("state of node %s: %w; remove %s to begin with the node file alone", file.Name, err, s.path)
	}
	node.Secret = file.Secret
	return node, api.ReadKeys(node)
}

// save writes the state in one step. File is the node file that runs, nil for a change made to what runs.
func (s *store) save(file, node *config.Node) error {
	if file != nil {
		fingerprint, err := config.Fingerprint(file)
		if err != nil {
			return err
		}
		s.kept.File = fingerprint
	}
	text, err := config.Marshal(node)
	if err != nil {
		return err
	}
	s.kept.Node, s.kept.Secret = string(text), secretMark(node.Secret)
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
	node, err := config.Parse(s.path, []byte(s.kept.Node))
	if err != nil {
		return nil
	}
	return node
}

// write writes the state as it is.
func (s *store) write() error {
	data, err := json.MarshalIndent(s.kept, "", "  ")
	if err != nil {
		return err
	}
	if err := writeFile(s.path, data); err != nil {
		return fmt.Errorf("save state: %w", err)
	}
	return nil
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

func (s *store) close() { s.lock.Close() }
