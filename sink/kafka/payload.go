package kafka

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// A payload is an entry of queue and spool: records of one window, each for its partition.
//
//	version<1b>  flags<1b>  label<varint>  records
//	record: topic<1b>  partition<uvarint>  len(head)<uvarint>  head  len(value)<uvarint>  value
//
// A later version of the program reads all earlier versions of payloads, since spools outlive upgrades.
const payloadVersion = 1

// flagClock marks a window that was counted while the clock was known to be wrong.
const flagClock = 1

// The topics of records, as payloads have them.
const (
	toWindows = 0
	toReports = 1
)

// maxPayload is about the most bytes of a payload; only a single record can be more.
const maxPayload = 1 << 19

// payload is one that is being made.
type payload struct {
	b       []byte
	records uint64
}

func newPayload(label int64, clockOff bool) payload {
	flags := byte(0)
	if clockOff {
		flags |= flagClock
	}
	return payload{b: binary.AppendVarint([]byte{payloadVersion, flags}, label)}
}

// add adds a record, whose head is encoded already.
func (p *payload) add(topic byte, partition int, head, value []byte) {
	p.b = append(p.b, topic)
	p.b = binary.AppendUvarint(p.b, uint64(partition))
	p.b = binary.AppendUvarint(p.b, uint64(len(head)))
	p.b = append(p.b, head...)
	p.b = binary.AppendUvarint(p.b, uint64(len(value)))
	p.b = append(p.b, value...)
	p.records++
}

// record is one of a payload, whose bytes it shares.
type record struct {
	topic       byte
	partition   int
	head, value []byte
}

// contents are a payload as it was read.
type contents struct {
	label    int64
	clockOff bool
	records  []record
}

// payloadError is the failure of reading a payload, with the byte and the reason.
type payloadError struct {
	Offset int
	field  string
	Err    error
}

func (e *payloadError) Error() string {
	return fmt.Sprintf("record of the spool: %s at byte %d: %v", e.field, e.Offset, e.Err)
}

// Unwrap returns the reason.
func (e *payloadError) Unwrap() error { return e.Err }

// The reasons for which a payload is not read.
var (
	errShort   = errors.New("is cut short")
	errVersion = errors.New("is of a version that this program does not know")
	errRange   = errors.New("is out of range")
)

// maxPartition bounds what a damaged payload can ask for.
const maxPartition = 1 << 16

// readPayload reads what add wrote.
func readPayload(b []byte) (c contents, err error) {
	at := 0
	fail := func(field string, err error) (contents, error) {
		return contents{}, &payloadError{at, field, err}
	}
	if len(b) < 2 {
		return fail("version", errShort)
	}
	if b[0] != payloadVersion {
		return fail("version", errVersion)
	}
	c.clockOff = b[1]&flagClock != 0
	at = 2
	label, n := binary.Varint(b[at:])
	if n <= 0 {
		return fail("label", errShort)
	}
	c.label = label
	at += n
	chunk := func() ([]byte, error) {
		size, n := binary.Uvarint(b[at:])
		if n <= 0 || size > uint64(len(b)-at-n) {
			return nil, errShort
		}
		part := b[at+n:][:size:size]
		at += n + int(size)
		return part, nil
	}
	for at < len(b) {
		r := record{topic: b[at]}
		if r.topic != toWindows && r.topic != toReports {
			return fail("topic", errRange)
		}
		at++
		partition, n := binary.Uvarint(b[at:])
		if n <= 0 {
			return fail("partition", errShort)
		}
		if partition >= maxPartition {
			return fail("partition", errRange)
		}
		r.partition = int(partition)
		at += n
		if r.head, err = chunk(); err != nil {
			return fail("head", err)
		}
		if r.value, err = chunk(); err != nil {
			return fail("value", err)
		}
		c.records = append(c.records, r)
	}
	return c, nil
}
