// Package stamp encodes, decodes and evaluates packets of STAMP, the Simple Two-Way Active Measurement Protocol. It
// covers RFC 8762 with and without authentication, the extensions of RFC 8972, and packets of TWAMP Light (RFC 5357,
// appendix I), which have the same layout. It also traces the ways of sessions. It has no sockets and no clock.
//
// # Parts
//
//	Request, Answer  the test packets of a session's sender and of its reflector
//	tlvs             the extensions behind either
//	Keys             HMAC-SHA-256, cut to 128 bits, over packets and extensions
//	Reflector        a request becomes an answer, which is never longer
//	Session          numbers and sends requests, and counts what became of them
//	Delays           durations in bounded memory
//	IOAM             the trace in a request that routers fill in, and the segments that a request passes
//	Trace            the packets that find the way of one port, and the answers of routers to them
//	Watch            notices that a port has another way than before, as where a switch hashes otherwise
//	Choose           the fewest ports whose ways have every link, or distinguish every two links, with a bound
//
// Every byte is checked before use. The [Error] of a refused packet has the field and its offset. FORMAT.md draws the
// packets.
//
// # Ways
//
// Each source port may have another way through a network that hashes. A trace finds it by packets whose TTL, or hop
// limit, expires on their way, as traceroute does, over IPv4 and IPv6 alike.
//
// A way is known by the addresses by which its routers answer. Where these are of the interfaces that packets come by,
// as with most routers, an address stands for the link to it. Where a router answers by one address for all interfaces,
// a link is two consecutive addresses. A link next to a router that does not answer is unknown, and neither covered nor
// counted as a link.
package stamp

import "strconv"

// Port is the UDP port of reflectors.
const Port = 862

// Sizes of packets, in bytes of UDP payload.
const (
	requestLen = 44  // without authentication; so long are requests and answers
	signedLen  = 112 // with authentication
	lightLen   = 41  // of an answer of TWAMP Light, and the shortest request that has an answer
	MostLen    = 9000
)

// Reason is the reason why a packet was refused.
type Reason uint8

// The closed list of reasons.
const (
	OK        Reason = iota
	Short            // shorter than a packet of its mode; a request that an answer would be longer than
	Long             // longer than MostLen
	BadMAC           // without a digest by a key of ours
	BadTime          // a time of PTP with a second's worth of nanoseconds or more
	BadEcho          // an answer that does not repeat its request
	BadTLV           // extensions that do not fit into their packet, or whose padding was changed on the way
	NoRoom           // of a session beyond those that a reflector remembers
	OverRate         // beyond the answers of a reflector in a second
	NotServed        // from an address that the settings do not allow, or an answer of another reflector
	NumReasons
)

var reasonNames = [NumReasons]string{"ok", "short", "long", "bad-mac", "bad-time", "bad-echo", "bad-tlv", "no-room", "over-rate", "not-served"}

// AnswerReasons are those for which a session refuses an answer.
var AnswerReasons = []Reason{Short, Long, BadMAC, BadTime, BadEcho, BadTLV}

// String is the name of the reason in metrics.
func (r Reason) String() string {
	if r < NumReasons {
		return reasonNames[r]
	}
	return "reason(" + strconv.Itoa(int(r)) + ")"
}

// Error makes a Reason usable as the target of errors.Is.
func (r Reason) Error() string { return r.String() }

// Error names the field and the place for which a packet was refused.
type Error struct {
	Field  string
	Offset int // in bytes from the beginning of the packet
	Reason Reason
}

// Error returns, for example, "stamp: hmac at byte 96: bad-mac".
func (e *Error) Error() string {
	return "stamp: " + e.Field + " at byte " + strconv.Itoa(e.Offset) + ": " + e.Reason.String()
}

// Unwrap is the reason.
func (e *Error) Unwrap() error { return e.Reason }

func refuse(field string, offset int, why Reason) error { return &Error{field, offset, why} }
