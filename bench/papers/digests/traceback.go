package digests

import (
	"math/bits"
	"math/rand/v2"
	"slices"

	"github.com/hopscope/hopscope/decode/pint"
)

// tracer finds a path from marked packets. It makes the packets, too, because schemes differ in their marks.
type tracer interface {
	// begin forgets everything; the packets now come over this path.
	begin(path []uint32) error
	// packet makes and decodes one packet, and returns the path if it is known.
	packet(r *rand.Rand) (path []uint32, done bool)
}

// pintTracer decodes PINT's digests as in the paper, and as in the authors' program where the paper is silent. Every
// digest of one unknown writer narrows that hop's candidates. A hop is known when one is left, and is then taken out
// of all digests. Unlike that program it keeps Baseline packets whose hash selects the first hop, and hashes values
// in the XOR layer.
type pintTracer struct {
	scheme     *pint.Scheme
	candidates []uint32 // V; the switches of the path itself if empty
	beside     [][]bool // by two switches: they are neighbours, which narrows the hops beside one; none if empty

	path    []uint32
	left    [][]uint32 // candidates by hop
	room    []uint32
	known   uint64
	waiting []folded
}

// folded is an XOR digest of several unknown writers.
type folded struct {
	packet  pint.Packet
	writers uint64 // all of them; those that are not known are in digest
	unknown uint64
	digest  uint32
}

func (t *pintTracer) begin(path []uint32) error {
	t.path, t.known, t.waiting = path, 0, t.waiting[:0]
	v := t.candidates
	if len(v) == 0 {
		v = path
	}
	t.left, t.room = t.left[:0], t.room[:0]
	for range path {
		t.room = append(t.room, v...)
	}
	for i := range path {
		t.left = append(t.left, t.room[i*len(v):(i+1)*len(v)])
	}
	for i := range path {
		t.settle(i)
	}
	return nil
}

func (t *pintTracer) packet(r *rand.Rand) ([]uint32, bool) {
	id := r.Uint32()
	digest := t.scheme.Digest(id, t.path)
	for n := range t.scheme.Instances() {
		p := t.scheme.Packet(id, n)
		w := t.scheme.Writers(&p, len(t.path))
		f := folded{packet: p, writers: w, unknown: w, digest: t.scheme.Part(digest, n)}
		t.peel(&f, t.known)
		if !t.narrow(&f) {
			t.waiting = append(t.waiting, f)
		}
	}
	for before := uint64(0); before != t.known; {
		before = t.known
		keep := t.waiting[:0]
		for _, f := range t.waiting {
			if t.peel(&f, t.known); !t.narrow(&f) {
				keep = append(keep, f)
			}
		}
		t.waiting = keep
	}
	if t.known != 1<<len(t.path)-1 {
		return nil, false
	}
	path := make([]uint32, len(t.path))
	for i := range path {
		path[i] = t.left[i][0]
	}
	return path, true
}

// peel removes known hops from a digest.
func (t *pintTracer) peel(f *folded, known uint64) {
	for w := f.unknown & known; w != 0; w &= w - 1 {
		i := bits.TrailingZeros64(w)
		f.digest ^= t.scheme.Value(&f.packet, f.packet.Role(f.writers, i+1), t.left[i][0])
		f.unknown &^= 1 << i
	}
}

// narrow uses a digest of one unknown writer, and reports whether the digest can be forgotten.
func (t *pintTracer) narrow(f *folded) bool {
	if f.unknown == 0 {
		return true
	}
	if f.unknown&(f.unknown-1) != 0 {
		return false
	}
	i := bits.TrailingZeros64(f.unknown)
	role := f.packet.Role(f.writers, i+1)
	keep := t.left[i][:0]
	for _, v := range t.left[i] {
		if t.scheme.Value(&f.packet, role, v) == f.digest {
			keep = append(keep, v)
		}
	}
	t.left[i] = keep
	t.settle(i)
	if t.beside != nil {
		t.spread(i, i-1)
		t.spread(i, i+1)
	}
	return true
}

// spread keeps the candidates of a hop that are neighbours of one of another hop's, and goes on from there.
func (t *pintTracer) spread(from, to int) {
	if to < 0 || to == len(t.left) {
		return
	}
	keep := t.left[to][:0]
	for _, v := range t.left[to] {
		if slices.ContainsFunc(t.left[from], func(u uint32) bool { return t.beside[u][v] }) {
			keep = append(keep, v)
		}
	}
	if len(keep) == len(t.left[to]) {
		return
	}
	t.left[to] = keep
	t.settle(to)
	t.spread(to, 2*to-from)
}

func (t *pintTracer) settle(i int) {
	if len(t.left[i]) == 1 {
		t.known |= 1 << i
	}
}

// ppmTracer is probabilistic packet marking (Savage, Wetherall, Karlin and Anderson, "Practical network support for
// IP traceback", SIGCOMM 2000). A packet carries one of 8 fragments, of 8 bits each, of an edge's address interleaved
// with its hash. Another 8 bits are the number of the fragment and the distance.
//
// Improved as in PINT's evaluation: the marking switch is drawn by reservoir sampling, so that far switches mark as
// many packets as near ones. Two readings are in its favour. There is one flow, so that fragments are never combined
// wrongly, and the distance is known although its 5 bits end at 31.
type ppmTracer struct {
	fragments int
	path      []uint32
	seen      []uint64
	missing   int
}

func (t *ppmTracer) begin(path []uint32) error {
	t.path, t.seen, t.missing = path, make([]uint64, len(path)), len(path)*t.fragments
	return nil
}

func (t *ppmTracer) packet(r *rand.Rand) ([]uint32, bool) {
	if hop, f := r.IntN(len(t.path)), r.IntN(t.fragments); t.seen[hop]>>f&1 == 0 {
		t.seen[hop] |= 1 << f
		t.missing--
	}
	return t.path, t.missing == 0
}

// amsTracer is the second advanced marking scheme (Song and Perrig, "Advanced and authenticated marking schemes for
// IP traceback", INFOCOM 2001). A packet carries the 8-bit hash of a switch by one of 8 functions, 3 bits for the
// function, and 5 for the distance. A hop is known when hashes of at least m functions agree with one switch only.
//
// Improved and read in its favour as [ppmTracer] is.
type amsTracer struct {
	m     int
	nodes []uint32 // the map of the network

	path  []uint32
	seen  []uint8
	left  [][]uint32
	known int
}

const amsFunctions = 8

func (t *amsTracer) begin(path []uint32) error {
	t.path, t.seen, t.left, t.known = path, make([]uint8, len(path)), make([][]uint32, len(path)), 0
	return nil
}

func (t *amsTracer) packet(r *rand.Rand) ([]uint32, bool) {
	hop, f := r.IntN(len(t.path)), r.IntN(amsFunctions)
	if t.decided(hop) || t.seen[hop]>>f&1 == 1 {
		return nil, false
	}
	t.seen[hop] |= 1 << f
	want := amsHash(t.path[hop], f)
	left := t.left[hop]
	if left == nil {
		left = t.nodes
	}
	var keep []uint32
	for _, v := range left {
		if amsHash(v, f) == want {
			keep = append(keep, v)
		}
	}
	if t.left[hop] = keep; t.decided(hop) {
		t.known++
	}
	if t.known < len(t.path) {
		return nil, false
	}
	path := make([]uint32, len(t.path))
	for i := range path {
		path[i] = t.left[i][0]
	}
	return path, true
}

func (t *amsTracer) decided(hop int) bool {
	return bits.OnesCount8(t.seen[hop]) >= t.m && len(t.left[hop]) == 1
}

func amsHash(v uint32, function int) uint8 {
	x := (uint64(v) + 1) * (0x9e3779b97f4a7c15 + uint64(function)*0xd1342543de82ef96)
	x ^= x >> 29
	x *= 0xbf58476d1ce4e5b9
	return uint8(x >> 56)
}
