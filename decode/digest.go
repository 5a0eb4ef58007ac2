package decode

// Coding is the definition by which the digest of a packet was written.
type Coding uint8

// The codings of digests: a plan of hopscope, and three published programs.
const (
	CodingPlan    Coding = iota // an execution plan, named by its epoch
	CodingMininet               // Mininet-PINT
	CodingTofino                // Tofino-PINT
	CodingHPCC                  // HPCC-PINT: the largest utilisation on the path
)

func (c Coding) String() string {
	return [...]string{"plan", "mininet", "tofino", "hpcc"}[min(c, CodingHPCC)]
}

// Digest is the content of a PINT packet: a few bits that its switches wrote, and the values that identify the
// writers.
type Digest struct {
	Value  uint64 // the bits as on the wire: those of the first query or instance lowest, or the Mininet program's MAC address
	ID     uint32 // of the packet, as the hashes take it
	Hops   uint8  // switches that the packet passed; 0 where the program does not report them
	Epoch  uint8  // of the execution plan
	Coding Coding

	// These two are of the Mininet program only. AMS is the digest of the scheme that the program compares itself
	// with. LastWriter is the ground truth of its evaluation, which no decoder may use.
	AMS        uint16
	LastWriter uint16
}
