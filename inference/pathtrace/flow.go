package pathtrace

import "math"

// maxPaths is how many paths of a flow are known at a time.
const maxPaths = 4

// Flow is a flow's place in a Tracer. The zero Flow is ready for use; [Tracer.Release] gives back what it holds. It may
// be moved, but not be used in two places.
type Flow struct {
	// Ingress and Egress name the sets of nodes (1 for the first of Config.Ends) that the first and the last node of
	// the path belong to; 0 if that is not known. They must be set before the first digest.
	Ingress, Egress uint16

	trace uint32           // of what is not known yet, +1
	paths [maxPaths]uint32 // known paths, the one seen last in front
	state flowState
}

type flowState struct {
	digests  uint32 // that were new and not rejected
	strays   uint32 // of those, explained by no known path
	pause    uint32 // digests to be ignored, of a flow that is untraceable
	against  uint16 // contradictions since the last path became known
	restarts uint8  // of those, since the flow was untraceable
	hopeless uint8  // how often it became untraceable
}

// Known reports whether a path of the flow is known.
func (f *Flow) Known() bool { return f.paths[0] != 0 }

// Undecided reports whether digests are there that are not explained yet.
func (f *Flow) Undecided() bool { return f.trace != 0 }

// Digests counts digests that were not rejected, and those of them that no path which was known then explains.
func (f *Flow) Digests() (all, unexplained uint32) { return f.state.digests, f.state.strays }

// record is a known path in a slab: a header, then the indices of its nodes.
type record []uint16

const (
	recHops    = iota
	recDigests // 32 bits: digests that agree with the path
	_
	recError // -log2 of the probability that the path is wrong, in 1/256
	recSeen  // 64 bits: hops that wrote into some digest
	_
	_
	_
	recNodes
)

func (r record) path() []uint16 { return r[recNodes : recNodes+int(r[recHops])] }

func (r record) digests() uint32 { return uint32(r[recDigests])<<16 | uint32(r[recDigests+1]) }

func (r record) agree(n uint32) {
	d := r.digests()
	d += min(n, ^d)
	r[recDigests], r[recDigests+1] = uint16(d>>16), uint16(d)
}

func (r record) seen() (s uint64) {
	for i := range 4 {
		s |= uint64(r[recSeen+i]) << (16 * i)
	}
	return s
}

func (r record) see(s uint64) {
	for i := range 4 {
		r[recSeen+i] = uint16(s >> (16 * i))
	}
}

// wrong is the probability that the path is wrong.
func (r record) wrong() float64 { return math.Exp2(-float64(r[recError]) / 256) }

func (r record) setWrong(p float64) {
	r[recError] = uint16(min(max(-math.Log2(p), 0)*256, math.MaxUint16))
}

// slab holds paths in chunks, by classes of length, with lists of free places.
type slab struct {
	classes [4]class
	bytes   int
}

type class struct {
	chunks [][]uint16
	free   []uint32
	used   uint32 // places of the chunks that were given out at least once
}

var classHops = [4]int{8, 16, 32, 64}

const chunkRecords = 256

// put stores a path and gives its reference, or 0 if that takes more memory than there is room for.
func (s *slab) put(path []uint16, room int) uint32 {
	n := 0
	for classHops[n] < len(path) {
		n++
	}
	c, size := &s.classes[n], recNodes+classHops[n]
	var i uint32
	if last := len(c.free) - 1; last >= 0 {
		i = c.free[last]
		c.free = c.free[:last]
	} else {
		if int(c.used) == len(c.chunks)*chunkRecords {
			if 2*chunkRecords*size > room {
				return 0
			}
			c.chunks = append(c.chunks, make([]uint16, chunkRecords*size))
			s.bytes += 2 * chunkRecords * size
		}
		i = c.used
		c.used++
	}
	ref := (i<<2 | uint32(n)) + 1
	r := s.get(ref)
	clear(r[:recNodes])
	r[recHops] = uint16(len(path))
	copy(r[recNodes:], path)
	return ref
}

func (s *slab) get(ref uint32) record {
	ref--
	n, i := ref&3, ref>>2
	size := uint32(recNodes + classHops[n])
	return record(s.classes[n].chunks[i/chunkRecords][i%chunkRecords*size:][:size])
}

func (s *slab) drop(ref uint32) {
	ref--
	c := &s.classes[ref&3]
	c.free = append(c.free, ref>>2)
}
