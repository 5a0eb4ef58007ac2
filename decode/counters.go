package decode

// CounterField is a set of the counts that a [Counters] can hold.
type CounterField uint16

// One bit for each count of a Counters, and one for its utilization.
const (
	CountInPackets CounterField = 1 << iota
	CountOutPackets
	CountInErrors
	CountOutErrors
	CountInDiscards
	CountOutDiscards
	CountInOctets
	CountOutOctets
	CountRxUtilization
)

// Counters holds the counts of an interface since its previous counters. A count whose bit in Has is not set is zero
// and has no meaning. The device does not keep it, or its counter restarted meanwhile. An error is a damaged packet.
// A discard is an intact packet that the interface dropped.
type Counters struct {
	Has           CounterField
	RxUtilization uint16 // share of the interface in use by what it received, in hundredths of a percent; the largest, and no sum
	Interface     uint32

	InPackets, OutPackets   uint64
	InErrors, OutErrors     uint64
	InDiscards, OutDiscards uint64
	InOctets, OutOctets     uint64
}

// All returns the counts in the order of their bits.
func (c *Counters) All() [8]*uint64 {
	return [...]*uint64{&c.InPackets, &c.OutPackets, &c.InErrors, &c.OutErrors, &c.InDiscards, &c.OutDiscards, &c.InOctets, &c.OutOctets}
}

// WholeUtilization is the RxUtilization of an interface that was in use all the time.
const WholeUtilization = 10_000

// Received returns the utilisation of the interface by received traffic, from 0 to 1, and whether it is known.
func (c *Counters) Received() (use float64, ok bool) {
	return float64(c.RxUtilization) / WholeUtilization, c.Has&CountRxUtilization != 0
}

// Add adds later counts of the same interface, or counts from another place.
func (c *Counters) Add(o *Counters) {
	c.Has |= o.Has
	c.RxUtilization = max(c.RxUtilization, o.RxUtilization)
	from := o.All()
	for i, n := range c.All() {
		*n += *from[i]
	}
}
