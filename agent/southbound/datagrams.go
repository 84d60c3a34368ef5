package southbound

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"net"
	"sync"

	"google.golang.org/protobuf/proto"

	"sextant/agent/southbound/southboundpb"
)

const (
	datagramKey = 32 // octets
	numberSize  = 8
	// datagramMost is how many octets of a change go as a datagram: with its headers it fits any
	// IPv6 path.
	datagramMost = 1200
)

// A Cipher is the key of a stream's datagrams, by which changes come ahead of the stream:
// southbound.proto has their format. A number is never sealed twice with a key.
type Cipher struct{ aead cipher.AEAD }

// NewCipher is the cipher of a key.
func NewCipher(key []byte) (*Cipher, error) {
	if len(key) != datagramKey {
		return nil, fmt.Errorf("a key of datagrams has %d octets; %d are wanted", len(key),
			datagramKey)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	aead, err := cipher.NewGCM(block)
	return &Cipher{aead}, err
}

func nonce(number []byte) []byte { return append(make([]byte, 4, 12), number...) }

// Seal is a change as a datagram; nil: it does not fit one.
func (c *Cipher) Seal(change *southboundpb.Change) ([]byte, error) {
	if proto.Size(change) > datagramMost {
		return nil, nil
	}
	plain, err := proto.Marshal(change)
	if err != nil {
		return nil, err
	}
	number := binary.BigEndian.AppendUint64(nil, change.GetNumber())
	return c.aead.Seal(number, nonce(number), plain, nil), nil
}

// Open is the change of a datagram.
func (c *Cipher) Open(datagram []byte) (*southboundpb.Change, error) {
	if len(datagram) < numberSize {
		return nil, fmt.Errorf("a datagram of %d octets has no number", len(datagram))
	}
	number := datagram[:numberSize]
	plain, err := c.aead.Open(nil, nonce(number), datagram[numberSize:], nil)
	if err != nil {
		return nil, err
	}
	change := &southboundpb.Change{}
	if err := proto.Unmarshal(plain, change); err != nil {
		return nil, err
	}
	if change.GetNumber() != binary.BigEndian.Uint64(number) {
		return nil, fmt.Errorf("change %d in the datagram of %d", change.GetNumber(),
			binary.BigEndian.Uint64(number))
	}
	return change, nil
}

// datagrams is where changes come ahead of a stream.
type datagrams struct {
	socket *net.UDPConn
	cipher *Cipher
	hello  *southboundpb.Datagrams
}

// listenDatagrams opens a port at the address from which this machine reaches a controller.
func listenDatagrams(controller string) (*datagrams, error) {
	probe, err := net.Dial("udp", controller) // sends nothing
	if err != nil {
		return nil, err
	}
	defer probe.Close()
	local := *probe.LocalAddr().(*net.UDPAddr)
	local.Port = 0
	socket, err := net.ListenUDP("udp", &local)
	if err != nil {
		return nil, err
	}
	key := make([]byte, datagramKey)
	_, _ = rand.Read(key) // never fails
	sealed, err := NewCipher(key)
	if err != nil {
		socket.Close()
		return nil, err
	}
	port := socket.LocalAddr().(*net.UDPAddr).Port
	return &datagrams{socket, sealed,
		&southboundpb.Datagrams{Port: uint32(port), Key: key}}, nil
}

// offerDatagrams opens a port for changes that come ahead of the stream, unless that is not wanted,
// and says so in the hello. What it returns closes the port.
func (s *session) offerDatagrams(ctx context.Context, hello *southboundpb.Hello) (end func()) {
	if !s.options.Datagrams {
		return func() {}
	}
	controller := s.options.Controllers[s.link]
	d, err := listenDatagrams(controller)
	if err != nil {
		s.options.Log.Info("changes come by the stream alone", "controller", controller, "error",
			err)
		return func() {}
	}
	hello.Datagrams = d.hello
	var done sync.WaitGroup
	done.Go(func() { s.takeDatagrams(ctx, d) })
	return func() { d.socket.Close(); done.Wait() }
}

// takeDatagrams makes the changes that come ahead of the stream, until the socket is closed.
func (s *session) takeDatagrams(ctx context.Context, from *datagrams) {
	octets := make([]byte, numberSize+datagramMost+from.cipher.aead.Overhead()+1)
	for ctx.Err() == nil {
		n, err := from.socket.Read(octets)
		if err != nil {
			return
		}
		change, err := from.cipher.Open(octets[:n])
		if err != nil {
			s.note(s.link, func(l *Link) { l.Forged++ })
			continue
		}
		if s.early(ctx, change) != nil {
			return // the stream has ended, too
		}
	}
}

// early makes a change ahead of the stream. Where its turn has not come, or the controller is not
// followed, the stream will say what becomes of it.
func (s *session) early(ctx context.Context, c *southboundpb.Change) error {
	s.applying.Lock()
	defer s.applying.Unlock()
	if c.GetNumber() != s.last+1 || s.obstacle() != "" {
		return nil
	}
	s.ahead = c.GetNumber()
	s.note(s.link, func(l *Link) { l.Early++ })
	return s.apply(ctx, c)
}
