package rate

import (
	"encoding/binary"
	"testing"
)

// Sequence numbers of recorded messages count on from lap to lap, by exporter.
func TestRecorded(t *testing.T) {
	message := func(seq uint32) []byte { return binary.BigEndian.AppendUint32(make([]byte, 8, 16), seq) }
	r := &recorded{messages: [][]byte{append(message(5), 0, 0, 0, 9), append(message(7), 0, 0, 0, 9)}, most: 16, at: 8, lap: 4, turn: make([]int, 2)}
	buf := make([]byte, r.Bytes())
	for i, want := range []uint32{5, 7, 9, 11, 13} {
		b := r.NextFrom(1, buf)
		if seq, domain := binary.BigEndian.Uint32(b[8:]), binary.BigEndian.Uint32(b[12:]); seq != want || domain != 2 {
			t.Errorf("message %d: number %d of domain %d, want %d of 2", i, seq, domain, want)
		}
	}
	if b := r.NextFrom(0, buf); binary.BigEndian.Uint32(b[8:]) != 5 || binary.BigEndian.Uint32(b[12:]) != 1 {
		t.Errorf("the first message of another exporter: %x", b)
	}
}
