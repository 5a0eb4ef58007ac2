package probe

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestOutlet holds that a collector without a listener is one problem, although every second datagram leaves.
func TestOutlet(t *testing.T) {
	var lines bytes.Buffer
	log := slog.New(slog.NewTextHandler(&lines, nil))
	o := &Outlet{Collector: "192.0.2.1:32766"}
	at := time.Unix(1_800_000_000, 0)
	for _, c := range []struct {
		after time.Duration
		err   error
		want  string // in the problem; "" for none
		logs  int    // lines so far
	}{
		{0, nil, "", 0},
		{time.Second, syscall.ECONNREFUSED, "reports to collector 192.0.2.1:32766 fail: nothing listens there", 1},
		{2 * time.Second, nil, "nothing listens there", 1},
		{3 * time.Second, syscall.ECONNREFUSED, "nothing listens there", 1},
		{13 * time.Second, nil, "nothing listens there", 1},
		{14 * time.Second, nil, "", 2},
		{15 * time.Second, errors.New("network is unreachable"), "fail: network is unreachable", 3},
	} {
		o.Sent(c.err, at.Add(c.after), log)
		got := o.Problem()
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("after %v and %v: the problem is %q, want %q", c.after, c.err, got, c.want)
		}
		if n := strings.Count(lines.String(), "\n"); n != c.logs {
			t.Errorf("after %v: %d lines in the log, want %d\n%s", c.after, n, c.logs, lines.String())
		}
	}
}
