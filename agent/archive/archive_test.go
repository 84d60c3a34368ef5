package archive_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"sextant/agent/archive"
	"sextant/agent/archive/archivetest"
	"sextant/config"
)

const web = "[2001:db8:80::80]:80/tcp"

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func open(t *testing.T, etcd *config.Etcd) *archive.Archive {
	t.Helper()
	a := archive.New(etcd)
	t.Cleanup(a.Close)
	return a
}

// noise makes data that differ from seed to seed.
func noise(seed byte, bytes int) []byte {
	data := make([]byte, bytes)
	rand.NewChaCha8([32]byte{seed}).Read(data)
	return data
}

// contents is what is read of a service, in order.
func contents(t *testing.T, a *archive.Archive, service string) (list []archive.Record) {
	t.Helper()
	list, err := a.Records(t.Context(), service)
	must(t, err)
	return list
}

func same(a, b archive.Record) bool { return a.Node == b.Node && bytes.Equal(a.Data, b.Data) }

// raw is a client of etcd beside the archive.
func raw(t *testing.T, etcd *config.Etcd) *clientv3.Client {
	t.Helper()
	client, err := clientv3.New(clientv3.Config{Endpoints: etcd.Endpoints, Logger: zap.NewNop(),
		DialTimeout: 10 * time.Second})
	must(t, err)
	t.Cleanup(func() { client.Close() })
	return client
}

// Records of several nodes, small ones and some above etcd's limit of a request, are found as they
// were written, the latest first; what is not part of them any more is gone.
func TestRecordsAreKept(t *testing.T) {
	server := archivetest.Start(t, config.Etcd{})
	a := open(t, server.Etcd())
	if got := contents(t, a, web); len(got) > 0 {
		t.Fatalf("in the beginning there is %v", got)
	}
	for _, size := range []int{3, 1 << 20, 1<<20 + 1, 0, 2_500_000} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			must(t, a.Put(t.Context(), web, "edge1", noise(1, 5)))
			must(t, a.Put(t.Context(), web, "edge1-b", noise(2, 6)))
			must(t, a.Put(t.Context(), web, "edge1", noise(byte(size), size)))
			want := []archive.Record{{Node: "edge1", Data: noise(byte(size), size)},
				{Node: "edge1-b", Data: noise(2, 6)}}
			if got := contents(t, a, web); !slices.EqualFunc(got, want, same) {
				t.Errorf("%d records are read, not the two that were written", len(got))
			}
			keys, err := raw(t, server.Etcd()).Get(t.Context(), "/sextant/", clientv3.WithPrefix(),
				clientv3.WithCountOnly())
			must(t, err)
			chunks := (int64(size) + 1<<20 - 1) >> 20
			if want := 1 + chunks + 2; keys.Count != want {
				t.Errorf("%d keys are in etcd, want %d", keys.Count, want)
			}
		})
	}
	must(t, a.Put(t.Context(), "192.0.2.1:any/udp", "edge1", noise(3, 7)))
	must(t, a.Delete(t.Context(), web, "edge1"))
	must(t, a.Delete(t.Context(), web, "never"))
	if diff := cmp.Diff([]archive.Record{{Node: "edge1-b", Data: noise(2, 6)}},
		contents(t, a, web)); diff != "" {
		t.Errorf("after the removal of edge1 (-want +got):\n%s", diff)
	}
	if got := contents(t, a, "192.0.2.1:any/udp"); len(got) != 1 {
		t.Errorf("of the other service there are %d records", len(got))
	}
}

// Who reads while others write sees each record as it was at some moment, never a mixture.
func TestReadersSeeWholeRecords(t *testing.T) {
	server := archivetest.Start(t, config.Etcd{})
	versions := [][]byte{noise(1, 1_100_000), noise(2, 10), noise(3, 1_200_000)}
	must(t, open(t, server.Etcd()).Put(t.Context(), web, "edge1", versions[0]))
	ended := make(chan error, 1)
	go func() {
		writer := archive.New(server.Etcd())
		defer writer.Close()
		for i := range 6 {
			if err := writer.Put(t.Context(), web, "edge1", versions[i%len(versions)]); err != nil {
				ended <- err
				return
			}
		}
		ended <- nil
	}()
	reader := open(t, server.Etcd())
	for {
		records := contents(t, reader, web)
		whole := false
		for _, v := range versions {
			whole = whole || len(records) == 1 && bytes.Equal(records[0].Data, v)
		}
		if !whole {
			t.Fatal("a record is read that nobody wrote")
		}
		select {
		case err := <-ended:
			must(t, err)
			return
		default:
		}
	}
}

// What others left under the prefix is no record.
func TestForeignKeys(t *testing.T) {
	server := archivetest.Start(t, config.Etcd{})
	client := raw(t, server.Etcd())
	for _, key := range []string{"a/b", "a/b/c/d", "/", "a//0000", "edge2/x/0000"} {
		_, err := client.Put(t.Context(), "/sextant/chains/s/"+key, "foreign")
		must(t, err)
	}
	_, err := client.Put(t.Context(), "/sextant/chains/s/edge1", "nowhere")
	must(t, err)
	if diff := cmp.Diff([]archive.Record{{Node: "edge1"}},
		contents(t, open(t, server.Etcd()), "s")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// An etcd that dies is an error that says where it is, and used again when it is back.
func TestEtcdDiesAndReturns(t *testing.T) {
	server := archivetest.Start(t, config.Etcd{})
	a := open(t, server.Etcd())
	must(t, a.Put(t.Context(), web, "edge1", noise(1, 1_100_000)))
	server.Kill()
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	_, err := a.Records(ctx, web)
	if err == nil || !strings.Contains(err.Error(),
		"read from etcd at "+server.Etcd().Endpoints[0]) {
		t.Errorf("reading from a dead etcd: %v", err)
	}
	if a.Put(ctx, web, "edge1", noise(2, 5)) == nil || a.Ping(ctx) == nil {
		t.Error("a dead etcd answers")
	}
	server.Restart()
	if got := contents(t, a, web); len(got) != 1 || !bytes.Equal(got[0].Data, noise(1, 1_100_000)) {
		t.Error("what was there before is not there any more")
	}
}

// What is no longer as it was put is found, whoever changed it, and nothing else is.
func TestLost(t *testing.T) {
	server := archivetest.Start(t, config.Etcd{})
	ctx := t.Context()
	a, other, hand := open(t, server.Etcd()), open(t, server.Etcd()), raw(t, server.Etcd())
	const mail = "[2001:db8:80::81]:25/tcp"
	lost := func() []string {
		t.Helper()
		services, err := a.Lost(ctx)
		must(t, err)
		slices.Sort(services)
		return services
	}
	put := func() {
		t.Helper()
		must(t, a.Put(ctx, web, "edge1", noise(1, 3<<20)))
		must(t, a.Put(ctx, mail, "edge1", noise(2, 10)))
		must(t, other.Put(ctx, web, "edge1-b", noise(3, 10))) // between the keys of edge1
		must(t, other.Put(ctx, web, "edge2", noise(3, 10)))
		if services := lost(); len(services) > 0 {
			t.Fatalf("%q are lost right after they were put", services)
		}
	}
	key := server.Etcd().Prefix + "/chains/" + url.PathEscape(web) + "/edge1"
	for name, change := range map[string]func() error{
		"the head is gone": func() error { return second(hand.Delete(ctx, key)) },
		"another head":     func() error { return second(hand.Put(ctx, key, "x")) },
		"the chunks": func() error {
			return second(hand.Delete(ctx, key+"/",
				clientv3.WithPrefix()))
		},
		"one more chunk":    func() error { return second(hand.Put(ctx, key+"/x/0000", "x")) },
		"an older record":   func() error { return other.Put(ctx, web, "edge1", noise(9, 3<<20)) },
		"another last one":  func() error { return replaceChunk(ctx, hand, key, -1) },
		"another first one": func() error { return replaceChunk(ctx, hand, key, 0) },
	} {
		put()
		must(t, change())
		if services := lost(); !slices.Equal(services, []string{web}) {
			t.Errorf("%s: %q are lost, want %q", name, services, web)
		}
	}
	put()
	must(t, second(hand.Delete(ctx, "", clientv3.WithPrefix())))
	if services := lost(); !slices.Equal(services, []string{web, mail}) {
		t.Errorf("etcd is empty, and %q are lost", services)
	}
	must(t, a.Delete(ctx, web, "edge1"))
	if services := lost(); !slices.Equal(services, []string{mail}) {
		t.Errorf("after one was deleted, %q are lost", services)
	}
}

// replaceChunk puts something else in place of the record's chunk i; -1 is the last one.
func replaceChunk(ctx context.Context, hand *clientv3.Client, key string, i int) error {
	answer, err := hand.Get(ctx, key+"/", clientv3.WithPrefix(), clientv3.WithKeysOnly())
	if err != nil {
		return err
	}
	at := (i + len(answer.Kvs)) % len(answer.Kvs)
	return second(hand.Put(ctx, string(answer.Kvs[at].Key), "x"))
}

// More services than fit one request are looked at.
func TestLostOfMany(t *testing.T) {
	server := archivetest.Start(t, config.Etcd{})
	a, hand := open(t, server.Etcd()), raw(t, server.Etcd())
	for i := range 200 {
		must(t, a.Put(t.Context(), fmt.Sprint(i), "edge1", noise(1, 10)))
	}
	must(t, second(hand.Delete(t.Context(), server.Etcd().Prefix+"/chains/170/edge1")))
	if services, err := a.Lost(t.Context()); err != nil || !slices.Equal(services,
		[]string{"170"}) {
		t.Errorf("%q are lost, %v", services, err)
	}
}
