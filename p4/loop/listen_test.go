package loop

import (
	"errors"
	"io"
	"net"
	"os"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/hopscope/hopscope/ingest/peer"
	"github.com/hopscope/hopscope/internal/testkit"
	"github.com/hopscope/hopscope/p4/agent/agentpb"
	"github.com/hopscope/hopscope/planner/control"
)

// TestSilentConnections: connections that send nothing neither keep an agent out nor take more than their places,
// whatever their number.
func TestSilentConnections(t *testing.T) {
	s := serveAgents(t, "a", "b")
	conf, err := TLS(s.by.files(t, "controller"))
	if err != nil {
		t.Fatal(err)
	}
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	const descriptors = 1024
	var closed atomic.Int64
	l := limitAgents(inner, descriptors, func() { closed.Add(1) })
	g := grpc.NewServer(ServeOptions(conf)...)
	agentpb.RegisterPlansServer(g, s.Server)
	go g.Serve(l)
	defer g.Stop()
	s.address = inner.Addr().String()
	follows := func(name string) {
		t.Helper()
		f, err := s.follow(t, s.by, name)
		if err == nil {
			err = f.Send(&agentpb.Answer{Agent: name})
		}
		if err != nil {
			t.Fatal(err)
		}
		select {
		case e := <-s.events:
			if up, ok := e.(control.Up); !ok || up.Device.Name != name {
				t.Fatalf("%+v", e)
			}
		case <-time.After(testkit.Patience):
			t.Fatalf("agent %s does not come in", name)
		}
	}
	follows("a")
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	open := make([]net.Conn, 0, descriptors)
	defer func() {
		for _, c := range open {
			c.Close()
		}
	}()
	for range testkit.Rounds(1500, 12_000) {
		c, err := net.Dial("tcp", s.address)
		if err != nil {
			t.Fatal(err)
		}
		if open = append(open, c); len(open) == 400 { // more than are let in, so that the first one has to go
			open[0].SetReadDeadline(time.Now().Add(testkit.Patience))
			if _, err := io.Copy(io.Discard, open[0]); errors.Is(err, os.ErrDeadlineExceeded) {
				t.Fatal("the oldest of 400 silent connections stays open")
			}
			open[0].Close()
			open = open[1:]
		}
	}
	follows("b")
	runtime.GC()
	runtime.ReadMemStats(&after)
	if more := int64(after.Sys) - int64(before.Sys); more > 64<<20 {
		t.Errorf("%d bytes more", more)
	}
	if n := l.(*peer.Limiter).Open(); n > descriptors-descriptors/4 {
		t.Errorf("%d connections are open", n)
	}
	if n := closed.Load(); n < int64(testkit.Rounds(1500, 12_000))-400 {
		t.Errorf("%d were closed", n)
	}
	select {
	case e := <-s.events:
		t.Errorf("the agent that was there: %+v", e)
	default:
	}
}
