package sink

import (
	"errors"
	"testing"
	"time"

	"github.com/hopscope/hopscope/internal/testkit"
)

func refusedOfAll() *RefusedEntry {
	return &RefusedEntry{
		Time: time.Unix(0, 1700000000123456789), Sink: "influx", Target: "http://store:8086", Batch: 1 << 40, Part: 7,
		Groups: []Refusal{
			{Points: 300, Series: []SeriesCount{{"hop", 299}, {"flow", 1}}, Reason: "field type conflict", Payload: []byte("hop,node=1 p99=2i\n")},
			{},
		},
	}
}

// TestRefusedOfBefore: a file of refused points has the bytes that earlier programs wrote, and is refused wherever it is cut.
func TestRefusedOfBefore(t *testing.T) {
	b := refusedOfAll().encode()
	testkit.SameState(t, "refused", b, func(b []byte) ([]byte, error) {
		e, err := decodeRefused(b)
		if err != nil {
			return nil, err
		}
		return e.encode(), nil
	})
	for n := range b {
		if _, err := decodeRefused(b[:n]); !errors.Is(err, errRefusedDamaged) {
			t.Fatalf("the first %d bytes: %v", n, err)
		}
		if n >= refusedHeaderLen { // with the checksum of what is left
			if _, err := decodeRefused(sealRefused(append([]byte{}, b[:n]...))); !errors.Is(err, errRefusedDamaged) {
				t.Fatalf("the first %d bytes, sealed: %v", n, err)
			}
		}
	}
}
