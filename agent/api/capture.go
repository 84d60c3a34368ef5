package api

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"time"

	"sextant/config"
)

// Capture says which packets are captured. Zero fields let all through.
type Capture struct {
	Role        Role           // whose packets; "": the edge's where there is one
	Interface   string         // where they arrive
	Service     string         // that they are for
	VIP         netip.Addr     // that they are for
	Source      netip.AddrPort // of the client's flow; with port 0, of all its flows
	Destination netip.AddrPort
	Protocol    config.Protocol
	Verdict     string
	Bytes       int // of each frame; 0: as many as can be
}

// CapturedPacket is a packet that arrived, and what became of it.
type CapturedPacket struct {
	Time  time.Time `json:"time"`
	Frame Frame     `json:"frame"` // as it arrived, perhaps not all of it
	// packets that came too fast to be told of, since the capture began
	Lost uint64 `json:"lost"`
	// Explanation has no bytes of the packet that left, and no next hop: these are not copied.
	Explanation Explanation `json:"explanation"`
}

// Matches reports whether a packet is one that is wanted.
func (c *Capture) Matches(e *Explanation) bool {
	var f Flow
	if e.Flow != nil {
		f = *e.Flow
	}
	switch {
	case c.Interface != "" && c.Interface != e.Interface,
		c.Service != "" && c.Service != e.Service,
		c.VIP.IsValid() && c.VIP != f.Destination.Addr(),
		c.Protocol != "" && c.Protocol != f.Protocol,
		c.Verdict != "" && c.Verdict != e.Verdict:
		return false
	}
	return endMatches(c.Source, f.Source) && endMatches(c.Destination, f.Destination)
}

func endMatches(want, got netip.AddrPort) bool {
	return !want.IsValid() || want.Addr() == got.Addr() &&
		(want.Port() == 0 || want.Port() == got.Port())
}

func (c *Capture) query() url.Values {
	q := url.Values{}
	for name, value := range map[string]string{
		"role": string(c.Role), "interface": c.Interface, "service": c.Service,
		"protocol": string(c.Protocol), "verdict": c.Verdict,
	} {
		q.Set(name, value)
	}
	for name, end := range map[string]netip.AddrPort{"source": c.Source,
		"destination": c.Destination} {
		if end.IsValid() {
			q.Set(name, end.String())
		}
	}
	if c.VIP.IsValid() {
		q.Set("vip", c.VIP.String())
	}
	if c.Bytes != 0 {
		q.Set("bytes", strconv.Itoa(c.Bytes))
	}
	return q
}

func captureOf(r *http.Request) (Capture, error) {
	c := Capture{
		Role: Role(r.FormValue("role")), Interface: r.FormValue("interface"),
		Service:  r.FormValue("service"),
		Protocol: config.Protocol(r.FormValue("protocol")), Verdict: r.FormValue("verdict"),
	}
	var errs [4]error
	if text := r.FormValue("vip"); text != "" {
		c.VIP, errs[0] = netip.ParseAddr(text)
	}
	if text := r.FormValue("source"); text != "" {
		c.Source, errs[1] = netip.ParseAddrPort(text)
	}
	if text := r.FormValue("destination"); text != "" {
		c.Destination, errs[2] = netip.ParseAddrPort(text)
	}
	if text := r.FormValue("bytes"); text != "" {
		c.Bytes, errs[3] = strconv.Atoi(text)
	}
	if err := errors.Join(errs[:]...); err != nil {
		return c, invalid(fmt.Sprintf("%v; write vip as an address, source and destination with "+
			"their ports, bytes as a number", err))
	}
	return c, nil
}

// Capture calls each with the packets that are wanted, until it returns an error or the context
// ends.
func (c *Client) Capture(ctx context.Context, want Capture, each func(CapturedPacket) error) error {
	response, err := c.send(ctx, request{path: "/v1/capture", query: want.query()})
	if err != nil {
		return err
	}
	defer response.Body.Close()
	for lines := bufio.NewReader(response.Body); ; {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return fmt.Errorf("%w any more: it ended the capture; see its log", ErrUnreachable)
		}
		if err != nil {
			return c.explain(ctx, err)
		}
		var answer struct {
			CapturedPacket
			Error *Error `json:"error"`
		}
		if err := json.Unmarshal(line, &answer); err != nil {
			return fmt.Errorf("read a captured packet: %w", err)
		}
		switch {
		case answer.Error != nil:
			return answer.Error
		case answer.Time.IsZero():
			continue // a line that shows that the other side is there
		}
		if err := each(answer.CapturedPacket); err != nil {
			return err
		}
	}
}

// capture streams packets until the client leaves. The first line is empty of a packet, and says
// that the capture has begun.
func (h handler) capture(w http.ResponseWriter, r *http.Request) {
	want, err := captureOf(r)
	if err != nil {
		writeError(w, err)
		return
	}
	var out *stream // nil: it has not begun
	begin := func() error {
		out = newStream(w, r)
		return out.send(struct{}{})
	}
	err = h.agent.Capture(r.Context(), want, begin, func(packets []CapturedPacket) error {
		for _, p := range packets {
			if err := out.write(p); err != nil {
				return err
			}
		}
		return out.flush.Flush()
	})
	switch {
	case err == nil || r.Context().Err() != nil:
	case out != nil:
		_ = out.send(errorBody{errorOf(err)}) // a client that is gone needs no answer
	default:
		writeError(w, err)
	}
}
