package signing

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"

	"sextant/packet/flow"
)

// Record is a service's chains as an edge keeps them in etcd:
//
//	offset  bytes  what
//	0       4      "SXER"
//	4       1      version, 2
//	5       3      0
//	8       8      when the chains were so, in nanoseconds since 1970, big endian
//	16      8      how many bytes the chains are, big endian
//	24      32     signature over endpoint, node, what precedes, and what follows
//	56      ...    the chains, compressed with DEFLATE, to the end
//
// Version 1 began with its signature in hexadecimal digits and had no time.
type Record struct {
	Endpoint, Node string // where it lies
	At             time.Time
	Chains         []byte // as pool writes them
}

const (
	recordMagic  = "SXER\x02\x00\x00\x00"
	recordSigned = len(recordMagic) + 16
	recordHeader = recordSigned + len(MAC{})
)

// Seal writes the record, signed.
func (r Record) Seal(secret flow.Secret) []byte {
	var packed bytes.Buffer
	w, _ := flate.NewWriter(&packed, flate.BestSpeed) // fails for unknown levels only
	_, _ = w.Write(r.Chains)                          // a buffer takes everything
	_ = w.Close()
	b := []byte(recordMagic)
	b = binary.BigEndian.AppendUint64(b, uint64(r.At.UnixNano()))
	b = binary.BigEndian.AppendUint64(b, uint64(len(r.Chains)))
	mac := r.sign(secret, b, packed.Bytes())
	return append(append(b, mac[:]...), packed.Bytes()...)
}

func (r Record) sign(secret flow.Secret, header, packed []byte) MAC {
	return Sign(secret, EtcdRecords, []byte(r.Endpoint), []byte(r.Node), header, packed)
}

// Open reads what Seal wrote for an endpoint and a node. Nothing is decompressed that is not
// signed, and never more than maxBytes.
func Open(secret flow.Secret, endpoint, node string, sealed []byte, maxBytes int) (Record, error) {
	r := Record{Endpoint: endpoint, Node: node}
	if len(sealed) < recordHeader || string(sealed[:len(recordMagic)]) != recordMagic {
		return r, errors.New("it is no record of version 2; an edge of another Sextant wrote it, " +
			"or it is not whole: run the same Sextant on all edges")
	}
	header, packed := sealed[:recordSigned], sealed[recordHeader:]
	if !r.sign(secret, header, packed).Equal(MAC(sealed[recordSigned:recordHeader])) {
		return r, errors.New("it is not signed with this cluster's secret for this place; " +
			"give all edges the same secret")
	}
	r.At = time.Unix(0, int64(binary.BigEndian.Uint64(header[8:])))
	size := binary.BigEndian.Uint64(header[16:])
	if size > uint64(maxBytes) {
		return r, fmt.Errorf("its chains have %d bytes, and %d at most would fit this service; "+
			"give all edges the same buckets", size, maxBytes)
	}
	var err error
	r.Chains, err = inflate(packed, int(size))
	return r, err
}

// inflate decompresses what has exactly that size, and nothing behind it.
func inflate(packed []byte, size int) ([]byte, error) {
	from := bytes.NewReader(packed)
	var plain bytes.Buffer
	n, err := io.Copy(&plain, io.LimitReader(flate.NewReader(from), int64(size)+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("decompress its chains: %w", err)
	case n != int64(size):
		return nil, fmt.Errorf("its chains do not have %d bytes, as it says", size)
	case from.Len() > 0:
		return nil, fmt.Errorf("%d bytes behind its end", from.Len())
	}
	return plain.Bytes(), nil
}
