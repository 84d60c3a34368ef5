package protection

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

// patience is how long a request may take.
const patience = 60 * time.Second

// requests are what became of requests one after the other. They survive JSON, to be kept.
type requests struct {
	Ms     []float64 `json:"ms"` // from before the connection is opened until the last byte
	Failed int       `json:"failed"`
	TCP    counters  `json:"tcp"`
}

// add joins two measurements.
func (r requests) add(o requests) requests {
	return requests{append(r.Ms, o.Ms...), r.Failed + o.Failed, r.TCP.plus(o.TCP)}
}

// fetch requests the document so often, one after the other, each on a connection of its own.
func (a *arena) fetch(ctx context.Context, count int) (requests, error) {
	var r requests
	if _, err := a.fetchOnce(ctx); err != nil &&
		ctx.Err() != nil { // neighbours resolve one another's addresses
		return r, err
	}
	before, err := a.settledCounters(ctx)
	if err != nil {
		return r, err
	}
	for range count {
		took, err := a.fetchOnce(ctx)
		if ctx.Err() != nil {
			return r, context.Cause(ctx)
		}
		if err != nil {
			r.Failed++
			continue
		}
		r.Ms = append(r.Ms, took.Seconds()*1e3)
	}
	after, err := a.settledCounters(ctx)
	r.TCP = after.minus(before)
	return r, err
}

// settleTime is longer than a packet is under way, and than TCP waits before it sends the end of a
// connection again to be sure.
const settleTime = 400 * time.Millisecond

// settledCounters reads the counters when everything has arrived that belongs to what is finished.
func (a *arena) settledCounters(ctx context.Context) (counters, error) {
	select {
	case <-ctx.Done():
		return counters{}, context.Cause(ctx)
	case <-time.After(settleTime):
	}
	return a.counters()
}

var errShort = errors.New("the document is not whole")

func (a *arena) fetchOnce(ctx context.Context) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true,
		DisableCompression: true, DialContext: a.dial}}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet,
		fmt.Sprintf("http://[%s]/100k", serverAddress), nil)
	if err != nil {
		return 0, err
	}
	begun := time.Now()
	response, err := client.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	n, err := io.Copy(io.Discard, response.Body)
	took := time.Since(begun)
	if err == nil && (n != documentBytes || response.StatusCode != http.StatusOK) {
		err = fmt.Errorf("%w: %s, %d bytes", errShort, response.Status, n)
	}
	return took, err
}

// dial connects from the client's node. A dial to a literal address makes its socket on the calling
// thread.
func (a *arena) dial(ctx context.Context, network, address string) (conn net.Conn, err error) {
	err = a.Spaces["hosta"].Do(func() error {
		conn, err = (&net.Dialer{}).DialContext(ctx, network, address)
		return err
	})
	return conn, err
}
