package harness

import (
	"bytes"
	"testing"

	"github.com/hopscope/hopscope/decode/sflow"
)

// Every datagram of counters is read to its end, fits into its buffer, and counts on.
func TestCounterLoad(t *testing.T) {
	c := &counterLoad{seq: make([]uint32, 3)}
	var rd sflow.Reader
	var d sflow.Datagram
	var s sflow.Sample
	for i := range 100 {
		buf := make([]byte, c.Bytes())
		b := c.NextFrom(i%3, buf)
		if len(b) > len(buf) {
			t.Fatalf("%d bytes, more than %d", len(b), len(buf))
		}
		rd.Start(&d, b, 0, len(b))
		n := 0
		for rd.Next(&s) {
			if s.Kind != sflow.Counters || s.Has&sflow.HasInterface == 0 || s.Interface.Index < 1 || s.Interface.Index > counterInterfaces {
				t.Errorf("sample %+v", s)
			}
			n++
		}
		if rd.Err.Reason != 0 || n != counterSamples || d.Seq != uint32(i/3+1) {
			t.Errorf("%d samples of datagram %d: %v", n, d.Seq, &rd.Err)
		}
	}
}

// A table has a line for each value, with the error in percent.
func TestSizingTable(t *testing.T) {
	var b bytes.Buffer
	r := SizingResult{[]SizingRow{{"small", "memory, MB", 110, 100, 0}}}
	if err := r.Print(&b); err != nil || !bytes.Contains(b.Bytes(), []byte("+10")) || bytes.Count(b.Bytes(), []byte("\n")) != 2 {
		t.Errorf("%v:\n%s", err, &b)
	}
}
