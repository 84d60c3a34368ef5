package cflb

import (
	"context"
	"encoding/binary"
	"fmt"
	"runtime"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"sextant/experiment"
)

// Of the frames that are pushed: UDP over IPv6.
const (
	frameHeader    = 14 + 40
	frameOctets    = frameHeader + 8 + 64
	frameNextAt    = 20 // the next header
	frameHopLimit  = 64
	xdpDrop        = 1
	xdpPass        = 2
	xdpTransmit    = 3
	contextDataEnd = 4
)

// push makes packets at the client and counts those that come out of the router.
type push struct {
	arena   *experiment.Arena
	sender  *ebpf.Program // sends each frame from another port
	counter *ebpf.Program // at the other ends of the router's links
	counts  *ebpf.Map
	index   int // of the client's interface
	frame   []byte
}

func newPush(l *experiment.Arena) (p *push, err error) {
	p = &push{arena: l}
	defer func(made *push) {
		if err != nil {
			made.close()
		}
	}(p)
	if p.counts, err = ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.Array, KeySize: 4, ValueSize: 8,
		MaxEntries: 1}); err != nil {
		return nil, err
	}
	if p.counter, err = loadCounter(p.counts); err != nil {
		return nil, err
	}
	var to, from netlink.Link
	if err = l.Spaces["near"].Do(func() (err error) {
		to, err = netlink.LinkByName("client")
		return err
	}); err != nil {
		return nil, err
	}
	if err = l.Spaces["client"].Do(func() (err error) {
		from, err = netlink.LinkByName("near")
		return err
	}); err != nil {
		return nil, err
	}
	p.index = from.Attrs().Index
	p.frame = make([]byte, frameOctets)
	copy(p.frame, to.Attrs().HardwareAddr)
	copy(p.frame[6:], from.Attrs().HardwareAddr)
	copy(p.frame[12:], []byte{0x86, 0xdd, 0x60})
	binary.BigEndian.PutUint16(p.frame[18:], frameOctets-frameHeader)
	p.frame[frameNextAt], p.frame[frameNextAt+1] = unix.IPPROTO_UDP, frameHopLimit
	copy(p.frame[22:], client6.AsSlice())
	copy(p.frame[38:], server6.AsSlice())
	binary.BigEndian.PutUint16(p.frame[frameHeader+2:], serverPort)
	binary.BigEndian.PutUint16(p.frame[frameHeader+4:], frameOctets-frameHeader)
	if p.sender, err = loadSender(p.frame); err != nil {
		return nil, err
	}
	return p, l.Spaces["far"].Do(func() error {
		for i := range links {
			link, err := netlink.LinkByName(fmt.Sprintf("l%d", i+1))
			if err == nil { // in place of the one with which a lab's interfaces take frames
				err = netlink.LinkSetXdpFdWithFlags(link, p.counter.FD(), nl.XDP_FLAGS_DRV_MODE)
			}
			if err != nil {
				return fmt.Errorf("count at the far end of link %d: %w", i+1, err)
			}
		}
		return nil
	})
}

func (p *push) close() {
	for _, one := range []interface{ Close() error }{p.sender, p.counter, p.counts} {
		one.Close()
	}
}

// loadSender is a program that sends each frame back from a random source port. It writes anew what
// a router changes: the kernel uses the memory of frames that came through again.
func loadSender(frame []byte) (*ebpf.Program, error) {
	word := func(at int16) asm.Instruction {
		return asm.StoreImm(asm.R2, at, int64(int32(binary.LittleEndian.Uint32(frame[at:]))),
			asm.Word)
	}
	return ebpf.NewProgram(&ebpf.ProgramSpec{Name: "push_sender", Type: ebpf.XDP,
		License: "Dual BSD/GPL", Instructions: asm.Instructions{
			asm.Mov.Reg(asm.R6, asm.R1),
			asm.FnGetPrandomU32.Call(),
			asm.LoadMem(asm.R2, asm.R6, 0, asm.Word),
			asm.LoadMem(asm.R3, asm.R6, contextDataEnd, asm.Word),
			asm.Mov.Reg(asm.R4, asm.R2),
			asm.Add.Imm(asm.R4, frameHeader+2),
			asm.JGT.Reg(asm.R4, asm.R3, "send"),
			asm.StoreMem(asm.R2, frameHeader, asm.R0, asm.Half),
			word(0), word(4), word(8),
			asm.StoreImm(asm.R2, frameNextAt+1, frameHopLimit, asm.Byte),
			asm.Mov.Imm(asm.R0, xdpTransmit).WithSymbol("send"),
			asm.Return(),
		}})
}

// loadCounter is a program that counts and drops UDP over IPv6, and lets the rest pass.
func loadCounter(counts *ebpf.Map) (*ebpf.Program, error) {
	return ebpf.NewProgram(&ebpf.ProgramSpec{Name: "push_counter", Type: ebpf.XDP,
		License: "Dual BSD/GPL", Flags: unix.BPF_F_XDP_HAS_FRAGS, Instructions: asm.Instructions{
			asm.LoadMem(asm.R2, asm.R1, 0, asm.Word),
			asm.LoadMem(asm.R3, asm.R1, contextDataEnd, asm.Word),
			asm.Mov.Reg(asm.R4, asm.R2),
			asm.Add.Imm(asm.R4, frameHeader),
			asm.JGT.Reg(asm.R4, asm.R3, "pass"),
			asm.LoadMem(asm.R4, asm.R2, frameNextAt, asm.Byte),
			asm.JNE.Imm(asm.R4, unix.IPPROTO_UDP, "pass"),
			asm.StoreImm(asm.RFP, -4, 0, asm.Word),
			asm.Mov.Reg(asm.R2, asm.RFP),
			asm.Add.Imm(asm.R2, -4),
			asm.LoadMapPtr(asm.R1, counts.FD()),
			asm.FnMapLookupElem.Call(),
			asm.JEq.Imm(asm.R0, 0, "pass"),
			asm.Mov.Imm(asm.R1, 1),
			asm.StoreXAdd(asm.R0, asm.R1, asm.DWord),
			asm.Mov.Imm(asm.R0, xdpDrop),
			asm.Return(),
			asm.Mov.Imm(asm.R0, xdpPass).WithSymbol("pass"),
			asm.Return(),
		}})
}

// xdpContext is struct xdp_md of the kernel.
type xdpContext struct{ Data, DataEnd, DataMeta, Ingress, Queue, Egress uint32 }

// send pushes packets and returns the processor time that this took, and how many have come out.
func (p *push) send(packets int) (took time.Duration, came uint64, err error) {
	before, err := p.count()
	if err != nil {
		return 0, 0, err
	}
	err = p.arena.Spaces["client"].Do(func() error {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		began, err := threadTime()
		if err != nil {
			return err
		}
		if _, err := p.sender.Run(&ebpf.RunOptions{Data: p.frame, Repeat: uint32(packets),
			Context: xdpContext{DataEnd: frameOctets, Ingress: uint32(p.index)},
			Flags:   unix.BPF_F_TEST_XDP_LIVE_FRAMES}); err != nil {
			return fmt.Errorf("push packets: %w", err)
		}
		ended, err := threadTime()
		took = ended - began
		return err
	})
	if err != nil {
		return 0, 0, err
	}
	after, err := p.count()
	return took, after - before, err
}

func (p *push) count() (n uint64, err error) {
	err = p.counts.Lookup(uint32(0), &n)
	return n, err
}

func threadTime() (time.Duration, error) {
	var t unix.Timespec
	err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t)
	return time.Duration(t.Nano()), err
}

// begin waits until packets come out: neighbours have to be found.
func (p *push) begin(ctx context.Context) error {
	const few, patience = 2000, 10 * time.Second
	last := uint64(0)
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		_, came, err := p.send(few)
		if last = came; err != nil || came == few {
			return err
		}
		if err := pause(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
	return fmt.Errorf("%d of %d packets came out of the router", last, few)
}

// round is the rate at which packets came out, per second of processor time.
func (p *push) round(packets int) (float64, error) {
	took, came, err := p.send(packets)
	if err == nil && came < uint64(packets)*9/10 {
		err = fmt.Errorf("%d of %d packets came out of the router", came, packets)
	}
	return float64(came) / took.Seconds(), err
}
