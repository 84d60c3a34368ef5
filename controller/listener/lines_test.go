package listener_test

import (
	"context"
	"encoding/json"
	"io"
	"testing"

	"sextant/controller/listener"
	"sextant/packet/telemetry"
)

// TestLinesOfASlowReader has reports wait for their reader while others come: each line has the
// pause of its own report.
func TestLinesOfASlowReader(t *testing.T) {
	lines, writer := io.Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	conn, socket, ended := run(ctx, t, listener.Options{Lines: writer})
	client := listener.NewClient(socket)
	const reports = 20
	for i := range uint32(reports) {
		b, err := telemetry.Group{Node: 12, Sequence: i}.Append(nil)
		if err == nil {
			b, err = telemetry.Report{Type: telemetry.RepINT, Congested: true,
				DomainID: telemetry.Domain, DSBits: telemetry.DSIdleGap | telemetry.DSFlowHash,
				Metadata: telemetry.AppendCongestion(nil, telemetry.Congestion{
					IdleGapUS: 1000 + i})}.Append(b)
		}
		if err == nil {
			_, err = conn.Write(b)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for received := uint64(0); received < reports; {
		exporters, err := client.Exporters(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if len(exporters) > 0 {
			received = exporters[0].Received
		}
	}
	decoder := json.NewDecoder(lines)
	for i := range uint32(reports) {
		var r listener.Report
		if err := decoder.Decode(&r); err != nil {
			t.Fatal(err)
		}
		if r.IdleGapUs == nil || *r.IdleGapUs != 1000+i {
			t.Errorf("line %d: %+v, want a pause of %d us", i, r, 1000+i)
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
