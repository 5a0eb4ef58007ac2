package program

import (
	"math"
	"testing"
)

// Counters go on behind 2^32, and are 0 in place of all ones. Drops are right where one sum has begun anew and the other has not.
func TestCountersWrap(t *testing.T) {
	s := newSwitch(t, "hopscope")
	if err := s.Command("table_add egress.counts egress.show_counts 2 =>"); err != nil {
		t.Fatal(err)
	}
	c := &s.program.(*hopscope).interfaces
	at := c.at(2)
	at.sent, at.v4 = math.MaxUint32-1, pair{math.MaxUint32, math.MaxUint32 - 100}
	at.offered, at.passed = pair{1, 50}, pair{math.MaxUint32 - 1, math.MaxUint32 - 149}
	for i, want := range []struct{ sent, packets, bytes uint32 }{{0, 0, 0}, {0, 1, 99}, {1, 2, 199}} {
		p := &Packet{Port: 2, length: 100, v4: make(ip4, 20)}
		c.offer(p)
		got := c.leave(p)
		if got.TxPackets != want.sent || got.IPv4Packets != want.packets || got.IPv4Bytes != want.bytes || got.DroppedPackets != 3 || got.DroppedBytes != 200 {
			t.Errorf("packet %d: %+v, want %+v, and 3 packets of 200 bytes dropped", i+1, *got, want)
		}
	}
}
