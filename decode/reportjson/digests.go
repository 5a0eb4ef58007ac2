package reportjson

import (
	"math/bits"
	"strconv"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/pint"
)

// Digests adds to the reports of PINT programs the hops that wrote their digests. For a single writer it adds the
// nodes that it can have been.
type Digests struct {
	mininet, tofino *pint.Scheme
	nodes           []uint32
}

// NewDigests reads digests of a network of these nodes.
func NewDigests(nodes []uint32) *Digests {
	return &Digests{mininet: pint.Mininet(), tofino: pint.Tofino(false), nodes: nodes}
}

// Append is [Append] for reports of PINT programs, with the keys writers (hops, from 1) and candidates (node ids).
func (d *Digests) Append(dst []byte, frame uint64, r *decode.Report) []byte {
	dst = Append(dst, frame, r)
	scheme, value := d.mininet, uint32(0)
	switch {
	case r.Has&decode.HasDigest == 0 || r.Err.Reason != 0:
		return append(dst, '\n')
	case r.Digest.Coding == decode.CodingMininet:
		value, _ = pint.MininetLanes(r.Digest.Value)
	case r.Digest.Coding == decode.CodingTofino:
		scheme, value = d.tofino, uint32(r.Digest.Value)
	default:
		return append(dst, '\n')
	}
	hops := int(r.Digest.Hops)
	if !scheme.Known(r.Digest.ID, hops) {
		return append(dst, '\n')
	}
	p := scheme.Packet(r.Digest.ID, 0)
	writers := scheme.Writers(&p, hops)
	dst = dst[:len(dst)-1] // the closing brace
	key := `,"writers":[`
	for w := writers; w != 0; w &= w - 1 {
		dst = strconv.AppendInt(append(dst, key...), int64(bits.TrailingZeros64(w)+1), 10)
		key = ","
	}
	if key == "," {
		dst = append(dst, ']')
	}
	if bits.OnesCount64(writers) == 1 {
		role := p.Role(writers, bits.Len64(writers))
		key = `,"candidates":[`
		for _, n := range d.nodes {
			if scheme.Value(&p, role, n) == value {
				dst = strconv.AppendUint(append(dst, key...), uint64(n), 10)
				key = ","
			}
		}
		if key == "," {
			dst = append(dst, ']')
		}
	}
	return append(dst, '}', '\n')
}
