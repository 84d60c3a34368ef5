package rtnetlink

import "bytes"

// Answer is what the kernel says of a request when it is done with it, or refuses it.
type Answer struct {
	Errno uint32 // 0: it was done
	Text  string // the kernel's own words about an error; "" if there are none
}

// AnswerIn reads an answer; ok is false if the message is another one.
func AnswerIn(h Header, body []byte) (a Answer, ok bool) {
	if h.Type != kindError && h.Type != kindDone || len(body) < sizeofCode {
		return a, false
	}
	a.Errno = -native.Uint32(body)
	const behind = sizeofCode + headerLength // the code, and the header of the request
	if a.Errno == 0 || h.Type != kindError || h.Flags&flagAckAttributes == 0 || len(body) < behind {
		return a, true
	}
	_ = attributes(body[behind:], func(kind uint16,
		value []byte) error { // what is broken says nothing
		if kind == errorText {
			text, _, _ := bytes.Cut(value, []byte{0})
			a.Text = string(text)
		}
		return nil
	})
	return a, true
}

// Link is an interface that changed.
type Link struct {
	Index uint32
	Up    bool
}

// LinkIn reads a message about an interface; ok is false if it is about something else. One that is
// gone is not up.
func LinkIn(h Header, body []byte) (l Link, ok bool) {
	if h.Type != kindNewLink && h.Type != kindDelLink || len(body) < sizeofLink {
		return l, false
	}
	return Link{Index: native.Uint32(body[4:]), Up: h.Type == kindNewLink &&
		native.Uint32(body[8:])&linkUp != 0}, true
}
