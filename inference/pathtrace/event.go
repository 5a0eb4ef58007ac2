package pathtrace

import "fmt"

// Event is the effect of a digest on the state of its flow.
type Event uint8

// The events. From RejectedHops on, the digest was refused and nothing was learnt from it.
const (
	Pending        Event = iota // the digest was taken in; the path is not known yet
	Decoded                     // the first path of the flow is known now
	Verified                    // the digest agrees with the path
	Inconsistent                // the digest agrees with no known path, and may be the first of a new one
	Changed                     // a path that replaces a known one is known now
	Parallel                    // a path is known now beside one that is still in use
	Returned                    // the digest agrees with another known path than the digests before it
	Contradiction               // no path explains all digests, and the older ones are forgotten
	Untraceable                 // digests contradict each other again and again, and the next ones will be ignored
	Duplicate                   // the same packet was seen before
	Ignored                     // the flow is untraceable, or its path has another length
	Confirmed                   // the digest agrees, and now all hops of the path are confirmed: it has no mark any more
	Revised                     // digests contradicted the published path, and another one takes its place
	RejectedHops                // the path has no hops, or more than the configured maximum
	RejectedDigest              // the digest is wider than those of the scheme
	RejectedPacket              // the scheme has no hashes of such a packet
	RejectedMemory              // there is no memory left for one more undecided flow
	numEvents
)

var eventNames = [numEvents]string{
	"pending", "decoded", "verified", "inconsistent", "changed", "parallel", "returned", "contradiction", "untraceable",
	"duplicate", "ignored", "confirmed", "revised", "rejected-hops", "rejected-digest", "rejected-packet", "rejected-memory",
}

func (e Event) String() string {
	if e < numEvents {
		return eventNames[e]
	}
	return fmt.Sprintf("event(%d)", uint8(e))
}

// Stats counts what a Tracer did.
type Stats struct {
	Events    [numEvents]uint64 // by Event
	Searches  uint64
	Steps     uint64 // of these searches
	Undecided int    // flows with digests that are not explained yet
	Bytes     int    // memory of all flows
}

// Stats returns the counters so far.
func (t *Tracer) Stats() Stats {
	s := t.stats
	s.Undecided = len(t.traces) - len(t.idle)
	s.Bytes = t.bytes + t.slab.bytes + t.logBytes
	return s
}
