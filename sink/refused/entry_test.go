package refused

import (
	"errors"
	"testing"
	"time"

	"github.com/hopscope/hopscope/internal/testkit"
)

func entryOfAll() *Entry {
	return &Entry{
		Time: time.Unix(0, 1700000000123456789), Sink: "influx", Target: "http://store:8086", Batch: 1 << 40, Part: 7,
		Groups: []Group{
			{Points: 300, Series: []Series{{"hop", 299}, {"flow", 1}}, Reason: "field type conflict", Payload: []byte("hop,node=1 p99=2i\n")},
			{},
		},
	}
}

// TestEntryOfBefore: a file of refused points has the bytes that earlier programs wrote, and is refused wherever it is cut.
func TestEntryOfBefore(t *testing.T) {
	b := entryOfAll().encode()
	testkit.SameState(t, "entry", b, func(b []byte) ([]byte, error) {
		e, err := decode(b)
		if err != nil {
			return nil, err
		}
		return e.encode(), nil
	})
	for n := range b {
		if _, err := decode(b[:n]); !errors.Is(err, errDamaged) {
			t.Fatalf("the first %d bytes: %v", n, err)
		}
		if n >= headerLen { // with the checksum of what is left
			if _, err := decode(seal(append([]byte{}, b[:n]...))); !errors.Is(err, errDamaged) {
				t.Fatalf("the first %d bytes, sealed: %v", n, err)
			}
		}
	}
}
