package churn

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"net"
	"time"

	"sextant/experiment"
)

var figure14 = experiment.Experiment{
	Name: "shadow-fig14", Title: "Throughput of one connection, without and with looking for it " +
		"on the host",
	Source: source + ", section VI-D, figure 14",
	Shows: "One TCP connection sends as fast as it can, to a server and from a server: where the " +
		"host takes whatever comes, where " +
		"it looks for the connection first, and while another server sends the packets on.",
	Paper: experiment.VRFShadowing, Needs: []string{"root"}, Lasts: "10 min",
	Run: runFigure14,
}

// direction says who sends.
type direction struct {
	name   string
	upload bool
}

var directions = []direction{{"to the server", true}, {"from the server", false}}

// throughputs are Mbit/s by direction and scenario, one per run.
type throughputs [][][]float64

func runFigure14(ctx context.Context, r *experiment.Recorder) error {
	runs, duration := 30, time.Second
	if r.Quick() {
		runs, duration = 2, 500*time.Millisecond
	}
	rates, err := experiment.Part(r, "rates", func() (rates throughputs, err error) {
		err = within(ctx, setting{name: "shadow-fig14", fast: true},
			func(ctx context.Context, a *arena) error {
				rates, err = a.throughputs(ctx, r, runs, duration)
				return err
			})
		return rates, err
	})
	if err != nil {
		return err
	}
	t := experiment.Table{
		Name: "throughput", Title: "Throughput in Mbit/s",
		Columns: []string{"Direction", "Connection", "Runs", "Mean", "Deviation", "of ecmp, %"},
	}
	for i, d := range directions {
		base, _ := moments(rates[i][0])
		for j, s := range scenarios {
			mean, deviation := moments(rates[i][j])
			t.Rows = append(t.Rows, cells(d.name, s.name, runs, mean, deviation, 100*mean/base))
			if j > 0 && !s.chained {
				r.Compare(experiment.Comparison{
					What: fmt.Sprintf("%s, %s: throughput by that without looking for the "+
						"connection", s.name, d.name),
					Source: "no significant difference", Ours: percent(mean / base),
					Says: "see the deviation of runs in the table",
				})
			}
		}
	}
	r.Table(t)
	r.Note("The links have no rate here: client, router, edge and servers share the processors " +
		"of this machine, which is what limits " +
		"the connection.")
	return nil
}

// throughputs measures run by run, each connection once per run and direction.
func (a *arena) throughputs(ctx context.Context, r *experiment.Recorder, runs int,
	duration time.Duration) (throughputs, error) {
	end, err := a.serve(bulkPort, bulk)
	if err != nil {
		return nil, err
	}
	defer end()
	rates := throughputs{make([][]float64, len(scenarios)), make([][]float64, len(scenarios))}
	for run := range runs {
		for j, s := range scenarios {
			for i, d := range directions {
				r.Progress("run %d of %d: %s, %s", run+1, runs, s.name, d.name)
				rate, err := a.throughput(ctx, s, d, duration)
				if err != nil {
					return nil, fmt.Errorf("%s, %s: %w", s.name, d.name, err)
				}
				rates[i][j] = append(rates[i][j], rate)
			}
		}
	}
	return rates, nil
}

// Commands that a client sends to the bulk server as the first byte.
const (
	sendBack = iota
	receive
	send
)

// bulk sends single bytes back, until it is told to receive or to send.
func bulk(conn net.Conn) {
	command := make([]byte, 1)
	for {
		if _, err := io.ReadFull(conn, command); err != nil {
			return
		}
		switch command[0] {
		case receive:
			count, err := io.Copy(io.Discard, conn)
			if err == nil {
				// The client sees when this is missing.
				_, _ = conn.Write(binary.BigEndian.AppendUint64(nil, uint64(count)))
			}
			return
		case send:
			for zeros := make([]byte, 1<<16); ; {
				if _, err := conn.Write(zeros); err != nil {
					return
				}
			}
		}
		if _, err := conn.Write(command); err != nil {
			return
		}
	}
}

// throughput measures a new connection in Mbit/s.
func (a *arena) throughput(ctx context.Context, s scenario, d direction,
	duration time.Duration) (float64, error) {
	straight, chained, err := a.lines(ctx, s.policy, bulkPort)
	if err != nil {
		return 0, err
	}
	l := straight
	if s.chained {
		l = chained
	}
	for _, open := range []*line{straight, chained} {
		if open != nil {
			defer open.conn.Close()
		}
	}
	conn := l.conn.(*net.TCPConn)
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return 0, err
	}
	begun := time.Now()
	count := uint64(0)
	if d.upload {
		count, err = upload(conn, duration)
	} else {
		count, err = download(conn, duration)
	}
	return float64(count) * 8 / 1e6 / time.Since(begun).Seconds(), err
}

// upload sends for some time and returns how many bytes the server has received.
func upload(conn *net.TCPConn, duration time.Duration) (uint64, error) {
	if _, err := conn.Write([]byte{receive}); err != nil {
		return 0, err
	}
	for begun, zeros := time.Now(), make([]byte, 1<<16); time.Since(begun) < duration; {
		if _, err := conn.Write(zeros); err != nil {
			return 0, err
		}
	}
	if err := conn.CloseWrite(); err != nil {
		return 0, err
	}
	count := make([]byte, 8)
	_, err := io.ReadFull(conn, count)
	return binary.BigEndian.Uint64(count), err
}

// download receives for some time.
func download(conn *net.TCPConn, duration time.Duration) (count uint64, err error) {
	if _, err := conn.Write([]byte{send}); err != nil {
		return 0, err
	}
	for begun, buffer := time.Now(), make([]byte, 1<<16); time.Since(begun) < duration; {
		n, err := conn.Read(buffer)
		count += uint64(n)
		if err != nil {
			return count, err
		}
	}
	return count, nil
}

// moments are mean and deviation; that of a single value is 0.
func moments(values []float64) (mean, deviation float64) {
	n := float64(len(values))
	for _, v := range values {
		mean += v / n
	}
	for _, v := range values {
		deviation += (v - mean) * (v - mean) / max(1, n-1)
	}
	return mean, math.Sqrt(deviation)
}
