package archive

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"sync"

	clientv3 "go.etcd.io/etcd/client/v3"

	"sextant/config"
)

// chunkBytes is below etcd's limit of a request (--max-request-bytes, 1.5 MiB) by more than all
// else in it.
const chunkBytes = 1 << 20

// Archive is a place in etcd. It connects when it is used, and again after a failure. Its methods
// may be called at the same time.
type Archive struct {
	etcd *config.Etcd

	mutex  sync.Mutex
	client *clientv3.Client // nil: not connected
	put    map[string]receipt
}

// receipt is how etcd took what was put last under a key.
type receipt struct {
	service  string
	revision int64
	chunks   int
}

// New returns the archive that the node file describes. It does not connect yet.
func New(etcd *config.Etcd) *Archive { return &Archive{etcd: etcd} }

// Close ends the connection.
func (a *Archive) Close() {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	if a.client != nil {
		a.client.Close()
		a.client = nil
	}
}

// Record is what a node wrote about a service.
type Record struct {
	Node string
	Data []byte
}

// with lets f use the connection. After a failure the next use begins with a new one, so that it
// finds new certificates and passwords.
func (a *Archive) with(ctx context.Context, what string, f func(*clientv3.Client) error) error {
	client, err := a.connected(ctx)
	if err == nil {
		if err = f(client); err == nil {
			return nil
		}
		a.forget(client)
	}
	return fmt.Errorf("%s etcd at %s: %w", what, strings.Join(a.etcd.Endpoints, ", "), reason(err))
}

func (a *Archive) connected(ctx context.Context) (*clientv3.Client, error) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	if a.client != nil {
		return a.client, nil
	}
	var err error
	a.client, err = connect(ctx, a.etcd)
	return a.client, err
}

func (a *Archive) forget(client *clientv3.Client) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	if a.client == client {
		a.client = nil
	}
	client.Close()
}

// service is what the keys of a service begin with.
func (a *Archive) service(service string) string {
	return a.etcd.Prefix + "/chains/" + url.PathEscape(service) + "/"
}

// Put replaces the node's record of a service.
func (a *Archive) Put(ctx context.Context, service, node string, data []byte) error {
	sum := sha256.Sum256(data)
	version := hex.EncodeToString(sum[:8])
	key := a.service(service) + node
	chunks := slices.Collect(slices.Chunk(data, chunkBytes))
	chunk := func(i int) clientv3.Op {
		return clientv3.OpPut(fmt.Sprintf("%s/%s/%04d", key, version, i), string(chunks[i]))
	}
	last := []clientv3.Op{
		clientv3.OpPut(key, version),
		clientv3.OpDelete(key+"/", clientv3.WithRange(key+"/"+version+"/")),
		clientv3.OpDelete(key+"/"+version+end, clientv3.WithRange(key+end)),
	}
	return a.with(ctx, "write to", func(client *clientv3.Client) error {
		for i := range chunks {
			if i == len(chunks)-1 {
				last = append(last, chunk(i))
			} else if _, err := client.Do(ctx, chunk(i)); err != nil {
				return err
			}
		}
		answer, err := client.Txn(ctx).Then(last...).Commit()
		if err == nil {
			a.note(key, &receipt{service, answer.Header.Revision, len(chunks)})
		}
		return err
	})
}

// note remembers what lies under a key; nil: nothing.
func (a *Archive) note(key string, r *receipt) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	switch {
	case r == nil:
		delete(a.put, key)
	case a.put == nil:
		a.put = map[string]receipt{key: *r}
	default:
		a.put[key] = *r
	}
}

// end is what follows "/" in the order of keys: the end of the keys that continue another one with
// "/".
const end = "0"

// Delete removes the node's record of a service, if there is one.
func (a *Archive) Delete(ctx context.Context, service, node string) error {
	key := a.service(service) + node
	return a.with(ctx, "delete from", func(client *clientv3.Client) error {
		_, err := client.Txn(ctx).Then(clientv3.OpDelete(key),
			clientv3.OpDelete(key+"/", clientv3.WithRange(key+end))).Commit()
		if err == nil {
			a.note(key, nil)
		}
		return err
	})
}

// Records returns what all nodes wrote about a service, what was written last first.
func (a *Archive) Records(ctx context.Context, service string) ([]Record, error) {
	prefix := a.service(service)
	var answer *clientv3.GetResponse
	err := a.with(ctx, "read from", func(client *clientv3.Client) (err error) {
		answer, err = client.Get(ctx, prefix, clientv3.WithPrefix())
		return err
	})
	if err != nil {
		return nil, err
	}
	type head struct {
		node, version string
		revision      int64
	}
	var heads []head
	data := map[string][]byte{} // by node/version
	for _, kv := range answer.Kvs {
		key := strings.TrimPrefix(string(kv.Key), prefix)
		switch words := strings.Split(key, "/"); len(words) {
		case 1:
			heads = append(heads, head{key, string(kv.Value), kv.ModRevision})
		case 3: // keys come in order, and so do chunks
			where := words[0] + "/" + words[1]
			data[where] = append(data[where], kv.Value...)
		}
	}
	slices.SortFunc(heads, func(a, b head) int { return cmp.Compare(b.revision, a.revision) })
	records := make([]Record, len(heads))
	for i, h := range heads {
		records[i] = Record{h.node, data[h.node+"/"+h.version]}
	}
	return records, nil
}

// lostBatch is how many records are looked at in one request: with two ranges each, as many as etcd
// takes (--max-txn-ops).
const lostBatch = 64

// Lost returns the services whose records in etcd are no longer as this Archive put them: they are
// gone, or another hand, or a backup that was brought back, changed them. It reads no data.
func (a *Archive) Lost(ctx context.Context) (services []string, err error) {
	a.mutex.Lock()
	put := maps.Clone(a.put)
	a.mutex.Unlock()
	for keys := range slices.Chunk(slices.Sorted(maps.Keys(put)), lostBatch) {
		var looks []clientv3.Op
		for _, key := range keys {
			looks = append(looks, clientv3.OpGet(key, clientv3.WithKeysOnly()),
				clientv3.OpGet(key+"/", clientv3.WithRange(key+end), clientv3.WithKeysOnly(),
					clientv3.WithLimit(int64(put[key].chunks)+1)))
		}
		err := a.with(ctx, "read from", func(client *clientv3.Client) error {
			answer, err := client.Txn(ctx).Then(looks...).Commit()
			if err != nil {
				return err
			}
			for i, key := range keys {
				var heads, chunks []int64
				for _, kv := range answer.Responses[2*i].GetResponseRange().Kvs {
					heads = append(heads, kv.ModRevision)
				}
				for _, kv := range answer.Responses[2*i+1].GetResponseRange().Kvs {
					chunks = append(chunks, kv.ModRevision)
				}
				if !put[key].holds(heads, chunks) {
					services = append(services, put[key].service)
				}
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return services, nil
}

// holds says whether keys were changed last when the record was put, by their revisions. Chunks are
// written before the head, or with it.
func (r receipt) holds(heads, chunks []int64) bool {
	return slices.Equal(heads, []int64{r.revision}) && len(chunks) == r.chunks &&
		slices.Max(append(chunks, 0)) <= r.revision
}

// Ping asks etcd for something small, so that it is known to answer.
func (a *Archive) Ping(ctx context.Context) error {
	return a.with(ctx, "reach", func(client *clientv3.Client) error {
		_, err := client.Get(ctx, a.etcd.Prefix+"/chains/", clientv3.WithCountOnly())
		return err
	})
}
