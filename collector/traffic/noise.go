package traffic

import "math/rand/v2"

// Noise makes datagrams that a collector must survive: datagrams of random bytes, and good reports with some bytes changed or the end
// cut off. Lengths vary from nothing to the size of a report. It belongs to one goroutine.
type Noise struct {
	good *Generator
	rng  *rand.Rand
}

var _ Datagrams = (*Noise)(nil)

// NewNoise makes noise out of the reports that cfg describes.
func NewNoise(cfg Config) (*Noise, error) {
	g, err := New(cfg)
	if err != nil {
		return nil, err
	}
	return &Noise{good: g, rng: rand.New(rand.NewPCG(cfg.Seed, golden))}, nil
}

// Exporters is the number of exporters.
func (n *Noise) Exporters() int { return n.good.Exporters() }

// Bytes is the length of the longest datagram.
func (n *Noise) Bytes() int { return n.good.Bytes() }

// NextFrom writes the next datagram into buf, which is grown when it is too small, and returns the part written.
func (n *Noise) NextFrom(exporter int, buf []byte) []byte {
	buf = n.good.NextFrom(exporter, buf)
	switch n.rng.IntN(4) {
	case 0: // nothing but random bytes
		buf = buf[:n.rng.IntN(len(buf)+1)]
		for i := range buf {
			buf[i] = byte(n.rng.Uint32())
		}
	case 1: // random bytes behind the version of a report
		for i := range buf {
			buf[i] = byte(n.rng.Uint32())
		}
		buf[0] = byte(n.rng.IntN(3))<<4 | buf[0]&0x0f
	case 2: // a few bytes changed
		for range 1 + n.rng.IntN(4) {
			buf[n.rng.IntN(len(buf))] = byte(n.rng.Uint32())
		}
	case 3: // cut
		buf = buf[:n.rng.IntN(len(buf)+1)]
	}
	return buf
}
