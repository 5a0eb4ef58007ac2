package querymix

// Tracer estimates the number of packets until the path of a flow is known, for the topology and the decoder of its
// implementation. Planning calls it for widths without a number of packets. Without a Tracer, planning uses a model of
// the published decoder, which knows no links.
type Tracer interface {
	// Codings lists codings of paths of that many switches that may suit the decoder better than the published one.
	// Only their Tau and XOR are used.
	Codings(hops int) []PathCoding

	// Packets is the mean number of packets until a path is known, over a number of paths that the Tracer draws. It is
	// infinite if that is above limit; this may be found out long before all paths are known.
	Packets(c PathCoding, paths int, limit float64) (float64, error)
}

// PathCoding is a way to code paths in the bits of packets.
type PathCoding struct {
	Hash string // how switches hash: mix (empty, too) or crc
	Seed uint32 // of the hashes
	Hops int    // switches of a path
	Width
	Tau float64   // probability of the Baseline layer
	XOR []float64 // probability of a hop to write, for each XOR layer
}
