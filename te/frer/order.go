package frer

import (
	"slices"
	"time"
)

// Orderer puts packets into the order of their numbers (RFC 9550, POF), holding none longer than a
// bound. After elimination packets are out of order where a loss on the fast path was filled by the
// slow one.
//
// It releases a packet when all before it were released, or when it, or one behind it, was held for
// the bound: then those before it are taken for lost. A packet that comes after its turn is
// released at once.
type Orderer[T any] struct {
	bound   time.Duration
	silence time.Duration
	last    uint32 // number released last
	begun   bool
	pushed  time.Duration
	held    []held[T] // by number
}

type held[T any] struct {
	number uint32
	until  time.Duration
	packet T
}

// NewOrderer returns an orderer that holds packets up to bound (POFMaxDelay), and after a silence
// (POFTakeAnyTime) takes any number for the next.
func NewOrderer[T any](bound, silence time.Duration) *Orderer[T] {
	return &Orderer[T]{bound: bound, silence: silence}
}

// Push takes a packet at the time now, and returns those to send, in order.
func (o *Orderer[T]) Push(number uint32, packet T, now time.Duration) []T {
	ready := o.Expire(now)
	if !o.begun || now-o.pushed > o.silence {
		ready = append(ready, o.release(len(o.held))...)
		o.begun, o.last = true, number-1
	}
	o.pushed = now
	if int32(number-o.last) <= 0 {
		return append(ready, packet)
	}
	at, _ := slices.BinarySearchFunc(o.held, number,
		func(h held[T], n uint32) int { return int(int32(h.number - n)) })
	o.held = slices.Insert(o.held, at, held[T]{number: number, until: now + o.bound,
		packet: packet})
	return append(ready, o.release(o.inTurn())...)
}

// Restart returns the packets that are held, in order, and takes any number for the next.
func (o *Orderer[T]) Restart() []T {
	o.begun = false
	return o.release(len(o.held))
}

// Expire returns the packets whose time is up at the time now, with those before them and what
// follows without a gap.
func (o *Orderer[T]) Expire(now time.Duration) []T {
	due := 0
	for i, h := range o.held {
		if h.until <= now {
			due = i + 1
		}
	}
	ready := o.release(due)
	return append(ready, o.release(o.inTurn())...)
}

// Due returns when Expire has something to do, if nothing is pushed until then; ok is false if
// nothing is held.
func (o *Orderer[T]) Due() (at time.Duration, ok bool) {
	for i, h := range o.held {
		if i == 0 || h.until < at {
			at = h.until
		}
	}
	return at, len(o.held) > 0
}

// inTurn returns how many of the packets held follow the last one without a gap. A number that is
// held twice counts twice.
func (o *Orderer[T]) inTurn() int {
	last := o.last
	for i, h := range o.held {
		if int32(h.number-last) > 1 {
			return i
		}
		last = h.number
	}
	return len(o.held)
}

// release takes the first n packets out.
func (o *Orderer[T]) release(n int) []T {
	var packets []T
	for _, h := range o.held[:n] {
		packets = append(packets, h.packet)
		o.last = h.number
	}
	o.held = slices.Delete(o.held, 0, n)
	return packets
}
