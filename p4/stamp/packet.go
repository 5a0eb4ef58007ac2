package stamp

import "encoding/binary"

var be = binary.BigEndian

// Request is a test packet of a session's sender.
type Request struct {
	Seq   uint32
	Time  Timestamp // T1
	Error ErrorEstimate
	SSID  uint16 // 0 for none
}

// Answer is a test packet of a session's reflector.
type Answer struct {
	Seq         uint32    // of the reflector; without state that of the request
	Time        Timestamp // T3
	Error       ErrorEstimate
	SSID        uint16
	Received    Timestamp // T2, in the format of Time
	SenderSeq   uint32
	SenderTime  Timestamp // T1
	senderError ErrorEstimate
	TTL         uint8 // that the request came with
}

// Mode is the layout of a session's packets.
type Mode bool

// The modes of RFC 8762.
const (
	Open          Mode = false
	Authenticated Mode = true
)

// Len is the size of a packet without extensions.
func (m Mode) Len() int {
	if m == Authenticated {
		return signedLen
	}
	return requestLen
}

const macLen = 16

// fields are where a packet of a mode has its fields.
type fields struct {
	time, err, ssid, received, senderSeq, senderTime, senderErr, ttl int
}

var layouts = map[Mode]*fields{
	Open:          {time: 4, err: 12, ssid: 14, received: 16, senderSeq: 24, senderTime: 28, senderErr: 36, ttl: 40},
	Authenticated: {time: 16, err: 24, ssid: 26, received: 32, senderSeq: 48, senderTime: 64, senderErr: 72, ttl: 80},
}

// Decode reads the base packet at the beginning of b. It checks no digest. Requests of TWAMP Light have 14 bytes and padding: what is
// shorter than an answer is [Short].
func (r *Request) Decode(b []byte, m Mode) error {
	least := signedLen
	if m == Open {
		least = lightLen
	}
	if err := sized(b, least); err != nil {
		return err
	}
	f := layouts[m]
	*r = Request{be.Uint32(b), Timestamp(be.Uint64(b[f.time:])), ErrorEstimate(be.Uint16(b[f.err:])), be.Uint16(b[f.ssid:])}
	return timed("timestamp", f.time, r.Time, r.Error)
}

// Append appends the base packet; in authenticated mode the digest is left 0 ([Keys.Sign]).
func (r *Request) Append(dst []byte, m Mode) []byte {
	dst, b := grow(dst, m.Len())
	f := layouts[m]
	be.PutUint32(b, r.Seq)
	be.PutUint64(b[f.time:], uint64(r.Time))
	be.PutUint16(b[f.err:], uint16(r.Error))
	be.PutUint16(b[f.ssid:], r.SSID)
	return dst
}

// Decode reads the base packet at the beginning of b. It checks no digest. Answers of TWAMP Light may end with their TTL.
func (a *Answer) Decode(b []byte, m Mode) error {
	least := signedLen
	if m == Open {
		least = lightLen
	}
	if err := sized(b, least); err != nil {
		return err
	}
	f := layouts[m]
	*a = Answer{
		be.Uint32(b), Timestamp(be.Uint64(b[f.time:])), ErrorEstimate(be.Uint16(b[f.err:])), be.Uint16(b[f.ssid:]), Timestamp(be.Uint64(b[f.received:])),
		be.Uint32(b[f.senderSeq:]), Timestamp(be.Uint64(b[f.senderTime:])), ErrorEstimate(be.Uint16(b[f.senderErr:])), b[f.ttl],
	}
	if err := timed("timestamp", f.time, a.Time, a.Error); err != nil {
		return err
	}
	return timed("receive_timestamp", f.received, a.Received, a.Error)
}

// Append appends the base packet; in authenticated mode the digest is left 0 ([Keys.Sign]).
func (a *Answer) Append(dst []byte, m Mode) []byte {
	dst, b := grow(dst, m.Len())
	a.put(b, m)
	return dst
}

// put writes the base packet over b, which has at least lightLen bytes, or signedLen.
func (a *Answer) put(b []byte, m Mode) {
	f := layouts[m]
	clear(b[:min(len(b), m.Len())])
	be.PutUint32(b, a.Seq)
	be.PutUint64(b[f.time:], uint64(a.Time))
	be.PutUint16(b[f.err:], uint16(a.Error))
	be.PutUint16(b[f.ssid:], a.SSID)
	be.PutUint64(b[f.received:], uint64(a.Received))
	be.PutUint32(b[f.senderSeq:], a.SenderSeq)
	be.PutUint64(b[f.senderTime:], uint64(a.SenderTime))
	be.PutUint16(b[f.senderErr:], uint16(a.senderError))
	b[f.ttl] = a.TTL
}

func sized(b []byte, least int) error {
	if len(b) < least {
		return refuse("length", len(b), Short)
	}
	if len(b) > MostLen {
		return refuse("length", MostLen, Long)
	}
	return nil
}

func timed(field string, at int, t Timestamp, e ErrorEstimate) error {
	if _, ok := t.nanos(e.PTP()); !ok {
		return refuse(field, at, BadTime)
	}
	return nil
}

// grow appends n zero bytes, which b is.
func grow(dst []byte, n int) (all, b []byte) {
	at := len(dst)
	for range n {
		dst = append(dst, 0)
	}
	return dst, dst[at:]
}
