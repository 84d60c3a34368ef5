package linkemu

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/vishvananda/netlink"

	"sextant/lab/netem"
)

// Run carries packets as a configuration file says until ctx ends. The interfaces must be in its
// namespace, and up.
func Run(ctx context.Context, file string) error {
	config, err := readConfig(file)
	if err != nil {
		return err
	}
	p, err := newPump(config.Links)
	if err != nil {
		return err
	}
	defer p.close()
	if err := os.Remove(config.Socket); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("remove an old socket: %w", err)
	}
	listener, err := net.Listen("unix", config.Socket)
	if err != nil {
		return fmt.Errorf("listen for commands: %w", err)
	}
	server := &http.Server{Handler: handler(p, config.Links), ReadHeaderTimeout: time.Second}
	go func() { _ = server.Serve(listener) }() // ends by Close
	defer server.Close()
	defer context.AfterFunc(ctx, p.stop)()
	ended := make(chan error, 1)
	go func() { ended <- p.run() }()
	return <-ended
}

// change is what a client asks for.
type change struct {
	Profile netem.Profile `json:"profile"`
	// whether the ends see a carrier; nil: as they do
	Carrier *bool `json:"carrier,omitempty"`
}

func handler(p *pump, links []Link) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /links", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(p.status(links)) // the client has gone
	})
	mux.HandleFunc("PUT /links/{link}/{side}", func(w http.ResponseWriter, r *http.Request) {
		link, err := strconv.Atoi(r.PathValue("link"))
		side, sideErr := strconv.Atoi(r.PathValue("side"))
		if err != nil || sideErr != nil || link < 0 || link >= len(links) || side < 0 || side > 1 {
			http.Error(w, "there is no such link; GET /links lists them", http.StatusNotFound)
			return
		}
		var c change
		if err := json.NewDecoder(r.Body).Decode(&c); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		p.set(link, side, c.Profile)
		if c.Carrier != nil {
			if err := setCarrier(links[link].Interfaces[side], *c.Carrier); err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
				return
			}
		}
		w.WriteHeader(http.StatusNoContent)
	})
	return mux
}

// setCarrier takes our end of a veth down, so that the node's loses its carrier, or brings it up.
func setCarrier(iface string, on bool) error {
	link, err := netlink.LinkByName(iface)
	if err == nil && on {
		err = netlink.LinkSetUp(link)
	} else if err == nil {
		err = netlink.LinkSetDown(link)
	}
	if err != nil {
		return fmt.Errorf("change the carrier of interface %s: %w", iface, err)
	}
	return nil
}
