package receiver

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hopscope/hopscope/internal/testkit"
	"github.com/hopscope/hopscope/sink"
	"github.com/hopscope/hopscope/sink/notify"
)

// narrow is a writer whose socket takes short messages alone.
type narrow struct {
	*SyslogWriter
	t      *testing.T
	writes int
}

func (n *narrow) Write(ctx context.Context, b *sink.Batch) error {
	n.writes++
	if n.link == nil {
		if err := n.connect(ctx); err != nil {
			return err
		}
	}
	if err := n.link.Conn.(*net.UnixConn).SetWriteBuffer(4096); err != nil {
		n.t.Error(err)
	}
	return n.SyslogWriter.Write(ctx, b)
}

// A system that refuses one message of three takes all others, in order, in as many writes as without refusals.
// Refused messages are kept. A sender of syslog sees no other fault of a single alert, because receivers answer
// nothing.
func TestThirdFails(t *testing.T) {
	const items = 60
	path := filepath.Join(t.TempDir(), "log")
	c, err := net.ListenPacket("unixgram", path)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	messages := datagrams(c)
	w := &narrow{SyslogWriter: syslogWriter(t, "unix", path, func(c *Syslog) { c.MaxBytes = 65000 }), t: t}
	folder := sink.OpenRefused(t.TempDir(), 16<<20)
	q := sink.NewQueue(w, sink.DefaultQueueConfig(), sink.QueueOptions{Refused: folder})
	for n := range items {
		a := syslogAlert(notify.Firing, "warning", fmt.Sprintf("item%03d", n))
		if a.Time = time.Unix(1_800_000_000, 0); n%3 == 0 {
			a.Text += strings.Repeat(" long", 10_000)
		}
		if err := q.Put(t.Context(), notify.Batch([]notify.Alert{a})); err != nil {
			t.Fatal(err)
		}
	}
	q.Start()
	for n := range items {
		if name := fmt.Sprintf("item%03d", n); n%3 != 0 {
			if m := next(t, messages); !strings.Contains(m, name) {
				t.Fatalf("want %s, got %.300s", name, m)
			}
		}
	}
	testkit.Until(t, "all messages have an end", func() bool { return q.Stats().PointsWritten+q.Stats().PointsRejected == items })
	if err := q.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	names, err := sink.ListRefused(folder.Dir())
	if st := q.Stats(); err != nil || len(names) != items/3 || st.PointsRejected != items/3 || st.Retries != 0 || w.writes != items {
		t.Errorf("%+v after %d writes, %d are kept, %v", st, w.writes, len(names), err)
	}
}
