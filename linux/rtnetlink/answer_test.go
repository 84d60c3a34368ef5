package rtnetlink_test

import (
	"encoding/binary"
	"slices"
	"testing"

	"sextant/linux/rtnetlink"
)

// Numbers of linux/netlink.h, linux/rtnetlink.h and linux/if.h.
const (
	nlmsgError, nlmsgDone = 2, 3
	newLink, delLink      = 16, 17
	ackTLVs               = 0x200
	iffUp                 = 1
)

// refused is the body of an answer: an error, the header of the request, and attributes.
func refused(errno int32, attributes ...byte) []byte {
	b := binary.NativeEndian.AppendUint32(nil, uint32(-errno))
	return slices.Concat(b, make([]byte, 16), attributes)
}

func attribute(kind uint16, value string) []byte {
	b := binary.NativeEndian.AppendUint16(nil, uint16(4+len(value)))
	b = append(binary.NativeEndian.AppendUint16(b, kind), value...)
	return append(b, make([]byte, (4-len(b)%4)%4)...)
}

func TestAnswers(t *testing.T) {
	const einval = 22
	text := slices.Concat(attribute(2, "1234"), attribute(1, "no such thing\x00"))
	for name, test := range map[string]struct {
		header rtnetlink.Header
		body   []byte
		want   rtnetlink.Answer
		ok     bool
	}{
		"done": {rtnetlink.Header{Type: nlmsgDone}, refused(0), rtnetlink.Answer{}, true},
		"acknowledged": {rtnetlink.Header{Type: nlmsgError}, refused(0), rtnetlink.Answer{},
			true},
		"refused": {rtnetlink.Header{Type: nlmsgError}, refused(einval),
			rtnetlink.Answer{Errno: einval}, true},
		"with a text": {rtnetlink.Header{Type: nlmsgError, Flags: ackTLVs}, refused(einval,
			text...), rtnetlink.Answer{Errno: einval, Text: "no such thing"}, true},
		"text not said": {rtnetlink.Header{Type: nlmsgError}, refused(einval, text...),
			rtnetlink.Answer{Errno: einval}, true},
		"text cut off": {rtnetlink.Header{Type: nlmsgError, Flags: ackTLVs}, refused(einval,
			attribute(1, "no such thing")[:9]...), rtnetlink.Answer{Errno: einval}, true},
		"too short": {rtnetlink.Header{Type: nlmsgError}, []byte{1, 2, 3}, rtnetlink.Answer{},
			false},
		"something else": {rtnetlink.Header{Type: newLink}, refused(einval), rtnetlink.Answer{},
			false},
	} {
		if got, ok := rtnetlink.AnswerIn(test.header, test.body); ok != test.ok ||
			got != test.want {
			t.Errorf("%s: %+v, %v; want %+v, %v", name, got, ok, test.want, test.ok)
		}
	}
}

func TestLinks(t *testing.T) {
	body := make([]byte, 16)
	binary.NativeEndian.PutUint32(body[4:], 7)
	down := slices.Clone(body)
	binary.NativeEndian.PutUint32(body[8:], iffUp)
	for name, test := range map[string]struct {
		kind uint16
		body []byte
		want rtnetlink.Link
		ok   bool
	}{
		"up":             {newLink, body, rtnetlink.Link{Index: 7, Up: true}, true},
		"down":           {newLink, down, rtnetlink.Link{Index: 7}, true},
		"gone":           {delLink, body, rtnetlink.Link{Index: 7}, true},
		"too short":      {newLink, body[:15], rtnetlink.Link{}, false},
		"something else": {nlmsgDone, body, rtnetlink.Link{}, false},
	} {
		if got, ok := rtnetlink.LinkIn(rtnetlink.Header{Type: test.kind},
			test.body); ok != test.ok || got != test.want {
			t.Errorf("%s: %+v, %v; want %+v, %v", name, got, ok, test.want, test.ok)
		}
	}
}

// Whatever the kernel sends is read as an answer, as a link, or as neither.
func FuzzAnswers(f *testing.F) {
	f.Add(uint16(nlmsgError), uint16(ackTLVs), refused(22, attribute(1, "no such thing\x00")...))
	f.Add(uint16(newLink), uint16(0), make([]byte, 16))
	f.Fuzz(func(t *testing.T, kind, flags uint16, body []byte) {
		header := rtnetlink.Header{Type: kind, Flags: flags}
		answer, answers := rtnetlink.AnswerIn(header, body)
		if _, link := rtnetlink.LinkIn(header, body); link && answers {
			t.Errorf("a message of type %d is an answer and a link", kind)
		}
		if answer.Text != "" && (answer.Errno == 0 || flags&ackTLVs == 0) {
			t.Errorf("%+v has a text, with flags %#x", answer, flags)
		}
	})
}

// A request is one message with its number, whose header says what is asked for.
func TestRequests(t *testing.T) {
	for name, test := range map[string]struct {
		bytes []byte
		want  rtnetlink.Header
		body  int // bytes
	}{
		"routes": {rtnetlink.AppendRouteDump(nil, 5, 10, 100),
			rtnetlink.Header{Type: 26, Flags: 0x301, Seq: 5}, 20},
		"next hops": {rtnetlink.AppendNextHopDump(nil, 6), rtnetlink.Header{Type: 106, Flags: 0x301,
			Seq: 6}, 8},
		"nothing": {rtnetlink.AppendNothing(nil, 7), rtnetlink.Header{Type: 1, Flags: 0x5,
			Seq: 7}, 0},
	} {
		if h, body, rest, err := rtnetlink.Next(test.bytes); err != nil || h != test.want ||
			len(body) != test.body || len(rest) > 0 {
			t.Errorf("%s: %+v with %d bytes, %d left, error %v; want %+v with %d", name,
				h, len(body), len(rest), err, test.want, test.body)
		}
	}
}
