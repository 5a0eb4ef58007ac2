package jsonl

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/hopscope/hopscope/internal/testkit"
	"github.com/hopscope/hopscope/sink"
)

// choosy is a disk that fails for some lines. It counts writes as its time, but for repeats of a line that failed alone before.
type choosy struct {
	output
	fails bool

	mu     sync.Mutex
	alone  map[string]bool
	good   int
	writes int
	when   int // of the last that brought lines
}

func (c *choosy) write(ctx context.Context, lines []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	n, bad := bytes.Count(lines, []byte{'\n'}), c.fails && bytes.Contains(lines, []byte("chokes"))
	if !bad || n > 1 || !c.alone[string(lines)] {
		c.writes++
	}
	if bad {
		if n == 1 {
			c.alone[string(lines)] = true
		}
		return syscall.EIO
	}
	if err := c.output.write(ctx, lines); err != nil {
		return err
	}
	c.good += n - bytes.Count(lines, []byte("chokes"))
	c.when = c.writes
	return nil
}

// A disk that fails for one line of three takes all others within twice the writes of a healthy one. Lines come alone
// or together. The failed lines are kept as refused.
func TestThirdFails(t *testing.T) {
	const lines, good = 60, 40
	for _, together := range []int{1, 20} {
		t.Run(fmt.Sprint(together), func(t *testing.T) {
			var took [2]int
			for i, fails := range []bool{false, true} {
				conf := DefaultConfig()
				conf.Path = t.TempDir() + "/x.jsonl"
				w, err := New(conf)
				if err != nil {
					t.Fatal(err)
				}
				disk := &choosy{output: w.out, fails: fails, alone: map[string]bool{}}
				w.out = disk
				qc := sink.DefaultQueueConfig()
				qc.RetryMin, qc.RetryMax = 50*time.Millisecond, 5*time.Second
				folder := sink.OpenRefused(t.TempDir(), 1<<20)
				q := sink.NewQueue(w, qc, sink.QueueOptions{Refused: folder})
				for n := 0; n < lines; {
					b := &sink.Batch{Reports: 1}
					for first := true; first || n%together != 0; first = false {
						name := "fine"
						if n%3 == 0 {
							name = "chokes"
						}
						b.Points = append(b.Points, sink.Point{Measurement: name, Fields: []sink.Field{sink.IntField("n", int64(n))}, Time: int64(n)})
						n++
					}
					if err := q.Put(t.Context(), b); err != nil {
						t.Fatal(err)
					}
				}
				q.Start()
				testkit.Until(t, "all good lines are written", func() bool {
					disk.mu.Lock()
					defer disk.mu.Unlock()
					took[i] = disk.when
					return disk.good == good
				})
				if err := q.Close(t.Context()); err != nil {
					t.Fatal(err)
				}
				if st := q.Stats(); i == 1 && (st.PointsRejected != lines-good || st.PointsWritten != good || folder.Stats().LostPoints > 0) {
					t.Errorf("%+v", st)
				}
			}
			if took[1] > 2*max(took[0], lines) {
				t.Errorf("the good lines took %d writes, and %d on a healthy disk", took[1], took[0])
			}
		})
	}
}
