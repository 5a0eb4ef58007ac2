package sequence

import (
	"testing"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/internal/testkit"
)

func TestStateOfBefore(t *testing.T) {
	a := New(testConfig(), 1)
	for i := range uint32(200) {
		for e := range uint32(6) {
			r := report20(e, e%3, i+e*1000, int64(i)*1e8)
			if r.NodeID == 0 { // which states of the time knew as none
				r.Has &^= decode.HasNodeID
			}
			a.Observe(r)
		}
		if i%50 == 49 {
			a.Cut(nil, int64(i)*1e8)
		}
	}
	a.Observe(&decode.Report{Version: decode.V05, Exporter: addr(9), Seq: 41, SeqBits: 32, FirstOfGroup: true, HWID: 3, To: 5,
		Has: decode.HasExporter | decode.HasHWID | decode.HasSeq})
	testkit.SameState(t, "tracker", a.AppendState(nil), func(b []byte) ([]byte, error) {
		c := New(testConfig(), 2)
		err := c.ReadState(b, nil)
		return c.AppendState(nil), err
	})
}
