package linkemu

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"golang.org/x/sys/unix"

	"sextant/lab/netem"
)

const (
	// underWayMost bounds the memory of a wire: 200 MB of frames of 1,500 bytes.
	underWayMost = 1 << 17
	// frameOverhead is an Ethernet header and a VLAN tag.
	frameOverhead = 18
	// roundsMost is how often a socket is read before others have their turn.
	roundsMost = 4
	// realTimePriority is that of the thread, of 1 to 99.
	realTimePriority = 10
)

// pump is the thread that carries the frames.
type pump struct {
	// held while frames are worked on; others change streams and read counters in between
	mu         sync.Mutex
	directions []*direction
	underWay   dueHeap
	order      uint64
	free       []*frame
	room       int // bytes of a frame
	batch      *batch
	poller     *poller
	wake       int       // an eventfd: the pump shall end
	epoch      time.Time // origin of all times
}

// direction is what comes from one interface and goes to another.
type direction struct {
	in, out  int // sockets
	mtu      int
	stream   *netem.Stream
	last     time.Duration // when the last frame came
	ready    []*frame      // to be sent now
	late     *hdrhistogram.Histogram
	overruns uint64 // frames for which the socket or the heap had no room
	tooLong  uint64
	unsent   uint64 // that the kernel did not take
	waiting  int    // frames under way
}

// lateMost is the longest lateness that is told apart.
const lateMost = time.Second

func newPump(links []Link) (p *pump, err error) {
	p = &pump{batch: newBatch(), epoch: time.Now(), wake: -1}
	defer func() {
		if err != nil {
			p.close()
		}
	}()
	if p.poller, err = newPoller(); err != nil {
		return p, err
	}
	if p.wake, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		return p, fmt.Errorf("make an eventfd: %w", err)
	}
	if err := p.poller.add(p.wake, -1); err != nil {
		return p, err
	}
	for _, link := range links {
		if err := p.addLink(link); err != nil {
			return p, err
		}
	}
	return p, nil
}

func (p *pump) addLink(link Link) error {
	sockets := [2]int{-1, -1}
	for side := range sockets {
		fd, err := openPacket(link.Interfaces[side])
		if err != nil {
			return err
		}
		sockets[side] = fd
		if err := p.poller.add(fd, len(p.directions)); err != nil {
			return err
		}
		p.directions = append(p.directions, &direction{
			in: fd, out: -1, mtu: link.MTU,
			stream: netem.NewStream(link.Seed, link.Ends[side], link.Profiles[side]),
			late:   hdrhistogram.New(1, int64(lateMost), 2),
		})
	}
	n := len(p.directions)
	p.directions[n-2].out, p.directions[n-1].out = sockets[1], sockets[0]
	p.room = max(p.room, link.MTU+frameOverhead)
	return nil
}

func (p *pump) close() {
	for _, d := range p.directions {
		unix.Close(d.in)
	}
	if p.wake >= 0 {
		unix.Close(p.wake)
	}
	if p.poller != nil {
		unix.Close(p.poller.fd)
	}
}

// stop ends run.
// fails only if it was stopped often
func (p *pump) stop() { _, _ = unix.Write(p.wake, []byte{1, 0, 0, 0, 0, 0, 0, 0}) }

func (p *pump) now() time.Duration { return time.Since(p.epoch) }

// run carries frames until stop. It keeps its thread.
func (p *pump) run() error {
	runtime.LockOSThread() // never unlocked: the thread, with its priority, ends with the goroutine
	hurry()
	for {
		events, err := p.poller.wait(p.patience())
		if err != nil {
			return err
		}
		stopped := p.turn(events)
		if stopped {
			return nil
		}
	}
}

// hurry lets the thread run before others, and wake when it is time. What is refused only costs
// accuracy.
func hurry() {
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
	attributes := unix.SchedAttr{
		Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: realTimePriority,
		// threads that the Go runtime makes from this one are ordinary ones
		Flags: unix.SCHED_FLAG_RESET_ON_FORK,
	}
	if unix.SchedSetAttr(0, &attributes, 0) != nil { // in a cgroup without real-time share
		_ = unix.Setpriority(unix.PRIO_PROCESS, unix.Gettid(), -20)
	}
}

// patience is how long there is nothing to send.
func (p *pump) patience() time.Duration {
	if len(p.underWay) == 0 {
		return -1
	}
	return max(0, p.underWay[0].at-p.now())
}

// turn takes what has come and sends what is due.
func (p *pump) turn(events []unix.EpollEvent) (stopped bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, event := range events {
		if event.Fd < 0 {
			return true
		}
		p.receive(p.directions[event.Fd])
	}
	p.send()
	return false
}

// receive reads what has come.
func (p *pump) receive(d *direction) {
	for range roundsMost {
		var frames [batchMost]*frame
		for i := range frames {
			frames[i] = p.take()
			p.batch.put(i, frames[i].room)
		}
		n, err := p.batch.receive(d.in, batchMost)
		if err != nil {
			n = 0 // nothing there, or the interface was just taken down
		}
		clock := time.Now()
		now := clock.Sub(p.epoch)
		// the wall clock's value at the epoch, as it goes now
		wall := time.Duration(clock.UnixNano()) - now
		for i, f := range frames {
			if i >= n {
				p.give(f)
				continue
			}
			f.data = f.room[:min(int(p.batch.messages[i].length), len(f.room))]
			p.arrived(d, f, min(p.batch.at(i, wall+now)-wall, now), p.batch.truncated(i))
		}
		if n < batchMost {
			return
		}
	}
}

// arrived decides about a frame.
func (p *pump) arrived(d *direction, f *frame, at time.Duration, truncated bool) {
	defer p.give(f)
	if truncated || len(f.data) > d.mtu+frameOverhead {
		d.tooLong++
		return
	}
	d.last = max(d.last, at)
	fate := d.stream.Arrive(d.last, len(f.data))
	for _, arrives := range fate.Arrives[:fate.Copies] {
		if len(p.underWay) >= underWayMost {
			d.overruns++
			continue
		}
		f.users++
		d.waiting++
		p.order++
		p.underWay.push(due{arrives, p.order, d, f})
	}
}

// take gives a frame with room, for one user.
func (p *pump) take() *frame {
	const chunk = 256
	if len(p.free) == 0 {
		memory := make([]byte, chunk*p.room)
		for i := range chunk {
			p.free = append(p.free, &frame{room: memory[i*p.room : (i+1)*p.room : (i+1)*p.room]})
		}
	}
	f := p.free[len(p.free)-1]
	p.free = p.free[:len(p.free)-1]
	f.users = 1
	return f
}

// give takes a user off a frame.
func (p *pump) give(f *frame) {
	f.users--
	if f.users == 0 {
		p.free = append(p.free, f)
	}
}

// send sends what is due, at most a batch for each direction before others have their turn.
func (p *pump) send() {
	now := p.now()
	for len(p.underWay) > 0 && p.underWay[0].at <= now {
		next := p.underWay.pop()
		d := next.to
		d.waiting--
		// in range, so there is no error
		d.late.RecordValue(min(max(1, int64(now-next.at)), int64(lateMost)))
		d.ready = append(d.ready, next.frame)
		if len(d.ready) == batchMost {
			p.flush(d)
			now = p.now()
		}
	}
	for _, d := range p.directions {
		p.flush(d)
	}
}

// flush sends the ready frames of a direction.
func (p *pump) flush(d *direction) {
	for rest := d.ready; len(rest) > 0; {
		for i, f := range rest {
			p.batch.put(i, f.data)
		}
		n, err := p.batch.send(d.out, len(rest))
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || n == 0 { // the first is the culprit
			d.unsent++
			n = 1
		}
		rest = rest[n:]
	}
	for i, f := range d.ready {
		p.give(f)
		d.ready[i] = nil
	}
	d.ready = d.ready[:0]
}
