package sketches

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// key is as long as a flow's 5-tuple with IPv6 addresses.
type key struct {
	addr  [4]uint64
	ports uint64
}

func (k *key) hash() uint64 { return hash(k.addr[0] ^ k.ports<<40) }

// line is a cache line's worth of a flow's own state.
type line [8]uint64

func filled(b *testing.B, flows int) (*FlowTable[key, [4]line], []key) {
	b.Helper()
	t, err := NewFlowTable[key, [4]line](FlowTableConfig{MemoryBytes: (56 + 256 + 13) * flows * 9 / 8, IdleTimeout: time.Hour}, nil)
	if err != nil {
		b.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 1))
	keys := make([]key, flows)
	for i := range keys {
		keys[i] = key{addr: [4]uint64{r.Uint64(), 2, 3, 4}, ports: r.Uint64()}
		t.Find(keys[i].hash(), &keys[i], 1)
	}
	// The order in which packets come, so that keys are read from memory in sequence as from a packet buffer.
	packets := make([]key, 1<<20)
	for i := range packets {
		packets[i] = keys[r.IntN(flows)]
	}
	return t, packets
}

var sizes = []struct {
	name  string
	flows int
}{{"10k", 10_000}, {"1M", 1_000_000}}

const batchSize = 32

// straight handles one packet after the other: finds the flow, counts in its first and its third line.
func straight(t *FlowTable[key, [4]line], packets []key) {
	for i := range packets {
		k := &packets[i]
		slot, _ := t.Find(k.hash(), k, 2)
		e := t.At(slot)
		e.Value[0][0]++
		e.Value[2][i&7]++
	}
}

// batched does the same in batches: look-ups, then a pass that reads the lines to be changed, then the counting.
func batched(t *FlowTable[key, [4]line], packets []key) (sum uint64) {
	var hashes [batchSize]uint64
	var refs [batchSize]*key
	var slots [batchSize]uint32
	for ; len(packets) >= batchSize; packets = packets[batchSize:] {
		keys := packets[:batchSize]
		for i := range keys {
			hashes[i], refs[i] = keys[i].hash(), &keys[i]
		}
		t.FindAll(hashes[:], refs[:], 2, slots[:], nil)
		for i, slot := range slots {
			sum += t.At(slot).Value[2][i&7]
		}
		for i, slot := range slots {
			e := t.At(slot)
			e.Value[0][0]++
			e.Value[2][i&7]++
		}
	}
	return sum
}

// Both take turns of 16384 packets, so that what else the machine does hits both. Medians are reported.
func BenchmarkFind(b *testing.B) {
	for _, s := range sizes {
		b.Run("flows="+s.name, func(b *testing.B) {
			t, packets := filled(b, s.flows)
			const turn = 1 << 14
			var one, all []float64
			at, sum := 0, uint64(0)
			next := func() []key {
				at = (at + turn) & (len(packets) - 1)
				return packets[at : at+turn]
			}
			for b.Loop() {
				p := next()
				start := time.Now()
				straight(t, p)
				one = append(one, float64(time.Since(start))/turn)
				p = next()
				start = time.Now()
				sum += batched(t, p)
				all = append(all, float64(time.Since(start))/turn)
			}
			slices.Sort(one)
			slices.Sort(all)
			b.ReportMetric(one[len(one)/2], "ns/straight")
			b.ReportMetric(all[len(all)/2], "ns/batched")
			b.ReportMetric(0, "ns/op") // two turns, of no interest
			_ = sum
		})
	}
}

// A full table under a flood: each key is new and evicts another.
func BenchmarkFlood(b *testing.B) {
	for _, s := range sizes {
		b.Run("flows="+s.name, func(b *testing.B) {
			b.ReportAllocs()
			t, packets := filled(b, s.flows)
			k, i := packets[0], uint64(0)
			for b.Loop() {
				k.ports = i
				t.Find(k.hash(), &k, int64(i))
				i++
			}
		})
	}
}
