package pint

// Reason is the reason why switches of a scheme cannot have written a digest.
type Reason uint8

// The reasons for which Check rejects digests.
const (
	Plausible   Reason = iota
	BadHops            // a path of no switches, or of more than MaxHops
	UnknownHash        // Tofino: the packet id or the hop is beyond the tables
	TooWide            // bits are set above the scheme's
	NoWriter           // something is in the digest of a packet into which no switch writes
	HighLane           // Mininet: 255 in the high lane of a Baseline packet, which is no remainder of 255
	MiddleLane         // Mininet: the middle lane of a Baseline packet is no remainder of 7
	LowLane            // Mininet: something is in the low lane of a Baseline packet
	numReasons
)

var reasons = [numReasons]string{"plausible", "impossible number of hops", "hash not known", "digest too wide",
	"digest without a writer", "high lane not below 255", "middle lane not below 7", "low lane not 0"}

func (r Reason) String() string {
	if r < numReasons {
		return reasons[r]
	}
	return "unknown reason"
}

// NumReasons is the size of an array with an entry for each Reason.
const NumReasons = int(numReasons)

// Known reports whether the hashes for a packet on a path of that many hops are known. They always are, except in the
// Tofino dialect, whose tables end, and for paths that are longer than MaxHops.
func (s *Scheme) Known(id uint32, hops int) bool {
	if s.dialect == tofino && (id >= tofinoIDs || hops > tofinoHops) {
		return false
	}
	return hops >= 1 && hops <= MaxHops
}

// Check distinguishes digests of all instances that no path of that many hops can have, with any nodes on it, from
// those that one can. For one that it finds plausible all other methods are defined.
func (s *Scheme) Check(id uint32, hops int, digest uint64) Reason {
	w := s.Width()
	switch {
	case hops < 1 || hops > MaxHops:
		return BadHops
	case !s.Known(id, hops):
		return UnknownHash
	case digest&^mask64(w*s.Instances()) != 0:
		return TooWide
	}
	for n := range s.Instances() {
		p := s.Packet(id, n)
		d := s.Part(digest, n)
		if d != 0 && s.Writers(&p, hops) == 0 {
			return NoWriter
		}
		if s.dialect == mininet && p.Baseline {
			switch {
			case d>>highShift == 255:
				return HighLane
			case d>>midShift&0xf > 6:
				return MiddleLane
			case d&1 != 0:
				return LowLane
			}
		}
	}
	return Plausible
}
