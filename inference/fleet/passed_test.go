package fleet

import (
	"fmt"
	"testing"
)

// TestGatePassedReports: windows of reports that are open when a later one closes close with it, with their values.
func TestGatePassedReports(t *testing.T) {
	for _, budget := range []int64{0, 1} {
		var log []Record
		s := newScript(t, func(c *Options) {
			c.Reports, c.MaxHeld = true, budget
			c.Fetch = func(offsets []int64, handle func(*Record)) error {
				for _, at := range offsets {
					handle(&log[at])
				}
				return nil
			}
		})
		add := func(h Head, value string) Verdict {
			t.Helper()
			h.Slice, h.Sum = 3, Sum([]byte(value))
			log = append(log, Record{Offset: int64(len(log)), Head: h, Value: []byte(value)})
			v, err := s.g.AddRecord(&log[len(log)-1])
			if err != nil {
				t.Fatal(err)
			}
			return v
		}
		add(Head{Kind: Reports, From: "a", Boot: 1, Seq: 1, End: 102 * tick, Reports: 3}, "three")
		add(Head{Kind: Reports, From: "b", Boot: 1, Seq: 1, End: 100 * tick, Reports: 5}, "five")
		add(Head{Kind: Reports, From: "b", Boot: 1, Seq: 2, End: 101 * tick, Reports: 7}, "seven")
		v := add(Head{Kind: Close, End: 102 * tick}, "")
		got := ""
		for _, c := range append(v.Passed, v.Closing) {
			got += fmt.Sprintf("%d %v %s;", c.End/tick, c.Reports, c.Values)
		}
		s.same("windows", got, "100 [5] [five];101 [7] [seven];102 [3] [three];")
		s.same("dropped", v.Dropped, []int64(nil))
		s.same("left", [3]any{s.g.Open(), s.g.Held(), len(s.g.Pending())}, [3]any{0, int64(0), 0})
		s.same("late", add(Head{Kind: Reports, From: "b", Boot: 1, Seq: 3, End: 101 * tick, Reports: 1}, "one").Kind, Late)
	}
}
