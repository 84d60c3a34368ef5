package rtnetlink

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// A frame of FPM (fpm/fpm.h of FRRouting) is version, type, and its length with these 4 bytes, in
// network byte order.
const (
	frameHeader  = 4
	frameVersion = 1
	frameNetlink = 1 // 2 is protobuf
)

// ReadFrame reads the next frame and returns the messages that are in it, which are valid until the
// next call with the same buffer. The error is io.EOF between frames, ErrMalformed if the bytes are
// no frame of netlink messages, and what the reader says.
func ReadFrame(r io.Reader, buffer *[]byte) ([]byte, error) {
	var header [frameHeader]byte
	if _, err := io.ReadFull(r, header[:]); err != nil {
		return nil, cut(err)
	}
	length := int(binary.BigEndian.Uint16(header[2:]))
	switch {
	case header[0] != frameVersion:
		return nil, malformed("version %d of FPM", header[0])
	case header[1] != frameNetlink:
		return nil, malformed("type %d of a frame; only netlink (1) is known: load zebra's "+
			"module dplane_fpm_nl", header[1])
	case length < frameHeader:
		return nil, malformed("length %d of a frame", length)
	}
	length -= frameHeader
	if cap(*buffer) < length {
		*buffer = make([]byte, 1<<16)
	}
	b := (*buffer)[:length]
	if _, err := io.ReadFull(r, b); err != nil {
		return nil, cut(fmt.Errorf("read a frame of %d bytes: %w", length, noEOF(err)))
	}
	return b, nil
}

// noEOF makes an end in the middle of a frame something else than one between two.
func noEOF(err error) error {
	if err == io.EOF { //nolint:errorlint // io.ReadFull returns it bare
		return io.ErrUnexpectedEOF
	}
	return err
}

// cut makes bytes that end within a frame malformed.
func cut(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.Join(ErrMalformed, err)
	}
	return err
}
