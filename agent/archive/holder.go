package archive

import (
	"context"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Holder is which of several processes holds a key.
type Holder struct {
	Name string
	// Revision is etcd's of the last write; 0: nothing holds the key. It grows with every write of
	// anything.
	Revision int64
}

// Holder reads what holds a key.
func (a *Archive) Holder(ctx context.Context, key string) (h Holder, err error) {
	err = a.with(ctx, "read from", func(client *clientv3.Client) error {
		answer, err := client.Get(ctx, a.etcd.Prefix+key)
		if err == nil && len(answer.Kvs) > 0 {
			h = Holder{string(answer.Kvs[0].Value), answer.Kvs[0].ModRevision}
		}
		return err
	})
	return h, err
}

// Hold writes a name under a key, if nothing has been written there since a revision. It returns
// the revision of this write, or false if something has.
func (a *Archive) Hold(ctx context.Context, key, name string, since int64) (revision int64,
	held bool, err error) {
	key = a.etcd.Prefix + key
	err = a.with(ctx, "write to", func(client *clientv3.Client) error {
		answer, err := client.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(key), "=", since)).
			Then(clientv3.OpPut(key, name)).Commit()
		if err == nil {
			revision, held = answer.Header.Revision, answer.Succeeded
		}
		return err
	})
	return revision, held, err
}

// Release removes a key, if nothing has been written there since a revision.
func (a *Archive) Release(ctx context.Context, key string, since int64) error {
	key = a.etcd.Prefix + key
	return a.with(ctx, "delete from", func(client *clientv3.Client) error {
		_, err := client.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(key), "=", since)).
			Then(clientv3.OpDelete(key)).Commit()
		return err
	})
}
