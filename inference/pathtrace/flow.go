package pathtrace

import "math"

// maxPaths is how many paths of a flow are known at a time.
const maxPaths = 4

// Flow is the state that the owner of a flow keeps for its Tracer. The zero Flow is ready for use; [Tracer.Release]
// frees the memory that it refers to. It may be moved to another place, but only one copy may be used.
type Flow struct {
	// Ingress and Egress name the sets of nodes that the first and the last node of the path belong to. They count from
	// 1, the first of Config.Ends; 0 means that the set is not known. They must be set before the first digest.
	Ingress, Egress uint16

	// Source stands for the sender of the flow: flows of one source count once where other flows confirm the map.
	Source uint32

	trace uint32           // 1 + the number of its trace, if there are digests that are not explained yet
	log   uint32           // 1 + the number of its log, if digests are kept
	paths [maxPaths]uint32 // references of known paths, the one seen last in front
	state flowState
}

type flowState struct {
	digests  uint32 // digests that were not rejected
	strays   uint32 // those of them that no known path explained
	pause    uint32 // how many digests are still to be ignored because the flow is untraceable
	against  uint16 // contradictions since the last path became known
	restarts uint8  // those of them since the flow was last found untraceable
	hopeless uint8  // how often it was found untraceable
}

// Known reports whether a path of the flow is known.
func (f *Flow) Known() bool { return f.paths[0] != 0 }

// undecided reports whether there are digests that are not explained yet.
func (f *Flow) undecided() bool { return f.trace != 0 }

// Digests returns the number of digests that were not rejected, and how many of them no path explained that was known
// when they came.
func (f *Flow) Digests() (all, unexplained uint32) { return f.state.digests, f.state.strays }

// record is a known path in a slab: a header, then the ids of its nodes.
type record []uint32

const (
	recHops    = iota // 8 bits: the number of hops; above them, -log2 of the probability that the path is wrong, in 1/256
	recDigests        // how many digests agree with the path
	recState          // 8 bits: the balance of digests against it; then whether hops are not confirmed; then its DeviationKind
	recSeen           // 64 bits: hops that wrote into some digest
	_
	recSure // 64 bits: hops that digests have confirmed well enough
	_
	recSuspects // 64 bits: hops that wrote into digests that contradict the path
	_
	recAstray // 64 bits: hops that have another node, which is not known
	_
	recNodes
)

const (
	unsettled = 1 << 8 // in recState: digests are still to confirm hops
	kindShift = 9
	opposes   = 16 // so many digests that agree with a path make up for one that contradicts it
)

func (r record) hops() int { return int(r[recHops] & 0xff) }

func (r record) path() []uint32 { return r[recNodes : recNodes+r.hops()] }

func (r record) agree(n uint32) { r[recDigests] += min(n, ^r[recDigests]) }

func (r record) seen() uint64 { return uint64(r[recSeen])<<32 | uint64(r[recSeen+1]) }

func (r record) see(s uint64) { r[recSeen], r[recSeen+1] = uint32(s>>32), uint32(s) }

func (r record) pair(i int) uint64 { return uint64(r[i])<<32 | uint64(r[i+1]) }

func (r record) setPair(i int, s uint64) { r[i], r[i+1] = uint32(s>>32), uint32(s) }

func (r record) sure() uint64        { return r.pair(recSure) }
func (r record) ensure(s uint64)     { r.setPair(recSure, s) }
func (r record) suspects() uint64    { return r.pair(recSuspects) }
func (r record) suspect(s uint64)    { r.setPair(recSuspects, s) }
func (r record) astray() uint64      { return r.pair(recAstray) }
func (r record) balance() uint32     { return r[recState] & 0xff }
func (r record) setBalance(b uint32) { r[recState] = r[recState]&^0xff | b }
func (r record) kind() deviationKind { return deviationKind(r[recState] >> kindShift) }

// marked are the hops that digests have not confirmed well enough.
func (r record) marked() uint64 {
	return hops(r.hops())&^r.sure() | r.suspects() | r.astray()
}

// oppose counts a digest that contradicts the path and that these hops wrote.
func (r record) oppose(writers uint64) {
	r.setBalance(min(r.balance()+opposes, 255))
	r.suspect(r.suspects() | writers)
}

// wrong is the probability that the path is wrong if the model is right.
func (r record) wrong() float64 { return math.Exp2(-float64(r[recHops]>>8) / 256) }

func (r record) setWrong(p float64) {
	r[recHops] = r[recHops]&0xff | uint32(min(max(-math.Log2(p), 0)*256, math.MaxUint16))<<8
}

// slab holds paths in chunks, by classes of length, with lists of free places.
type slab struct {
	classes [4]class
	bytes   int
}

type class struct {
	chunks [][]uint32
	free   []uint32
	used   uint32 // how many places were given out at least once
}

var classHops = [4]int{8, 16, 32, 64}

const chunkRecords = 256

// put makes a place for a path of so many hops and returns its reference, or 0 if that takes more than room bytes.
func (s *slab) put(hops, room int) uint32 {
	n := 0
	for classHops[n] < hops {
		n++
	}
	c, size := &s.classes[n], recNodes+classHops[n]
	var i uint32
	if last := len(c.free) - 1; last >= 0 {
		i = c.free[last]
		c.free = c.free[:last]
	} else {
		if int(c.used) == len(c.chunks)*chunkRecords {
			if 4*chunkRecords*size > room {
				return 0
			}
			c.chunks = append(c.chunks, make([]uint32, chunkRecords*size))
			s.bytes += 4 * chunkRecords * size
		}
		i = c.used
		c.used++
	}
	ref := (i<<2 | uint32(n)) + 1
	r := s.get(ref)
	clear(r[:recNodes])
	r[recHops] = uint32(hops)
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
