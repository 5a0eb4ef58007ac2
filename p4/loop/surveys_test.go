package loop

import (
	"context"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/hopscope/hopscope/internal/testkit"
	"github.com/hopscope/hopscope/p4/agent/agentpb"
)

// reportAs connects as an agent that reports rounds, with a certificate of a name.
func (s *served) reportAs(t *testing.T, certificate, name string) agentpb.Plans_TellClient {
	t.Helper()
	c, ctx := s.connect(t, s.by, certificate)
	stream, err := c.Tell(ctx)
	if err == nil {
		err = stream.Send(&agentpb.Rounds{Agent: name})
	}
	if err != nil {
		t.Fatal(err)
	}
	return stream
}

// asked surveys until so many agents have answered: those that connect may not have come yet.
func (s *served) asked(t *testing.T, agents int) []Answer {
	t.Helper()
	for end := time.Now().Add(testkit.Patience); time.Now().Before(end); {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		reported := s.Survey(ctx)
		cancel()
		if len(reported) == agents {
			return reported
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("%d agents never answer", agents)
	return nil
}

// TestRoundsServer: agents report only their own rounds, under the name of their certificate. Unsolicited and late
// answers are ignored, and a new connection is another life. An agent that does not answer delays the survey no longer
// than asked.
func TestRoundsServer(t *testing.T) {
	s := serveAgents(t, "a", "b")
	for _, x := range []struct{ certificate, name string }{{"b", "a"}, {"c", "c"}} {
		if _, err := s.reportAs(t, x.certificate, x.name).Recv(); status.Code(err) != codes.PermissionDenied {
			t.Errorf("%s says that it is %s: %v", x.certificate, x.name, err)
		}
	}
	ended := make(chan error, 8)
	reply := func(c agentpb.Plans_TellClient, edit func(m *agentpb.Rounds)) {
		for {
			ask, err := c.Recv()
			if err != nil {
				ended <- err
				return
			}
			for _, about := range []uint64{0, ask.GetNumber() - 1, ask.GetNumber() + 1, ask.GetNumber(), ask.GetNumber()} {
				m := &agentpb.Rounds{Agent: "b", About: about, Spoiled: about} // whose name is that of the certificate all the same
				edit(m)
				_ = c.Send(m) // the end is for the receiver
			}
		}
	}
	first := s.reportAs(t, "a", "a")
	go reply(first, func(*agentpb.Rounds) {})
	reported := s.asked(t, 1)
	if x := reported[0]; x.agent != "a" || x.Wrong != nil || x.Rounds == nil || x.Rounds.Spoiled != s.rounds.last || x.Answered < x.Asked {
		t.Errorf("reported %+v", x)
	}
	hostile := s.reportAs(t, "b", "b")
	go reply(hostile, func(m *agentpb.Rounds) { m.Sent = []*agentpb.Sent{{Id: "p1"}} })
	for _, x := range s.asked(t, 2) {
		if (x.Wrong != nil) != (x.agent == "b") || x.agent == "b" && x.Rounds != nil {
			t.Errorf("reported %+v", x)
		}
	}
	second := s.reportAs(t, "a", "a") // takes the place of the first
	if err := <-ended; status.Code(err) != codes.Aborted {
		t.Errorf("the first connection ends with %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	for _, x := range s.Survey(ctx) { // which the second one does not answer yet
		if x.agent == "a" {
			t.Errorf("reported %+v", x)
		}
	}
	go reply(second, func(*agentpb.Rounds) {})
	for _, x := range s.asked(t, 2) {
		if x.agent == "a" && x.Life == reported[0].Life {
			t.Errorf("another connection is the same life: %+v", x)
		}
	}
}

// TestReportAddresses: an agent with a good certificate that claims the address of another one is refused, and named; the other one is not.
func TestReportAddresses(t *testing.T) {
	for _, c := range []struct {
		name, honest, other string // certificates
		claims              byte
		want                string // of the other; "" if it is not refused
	}{
		{"both have addresses", "a 10.0.0.1", "b 10.0.0.2 fd00::2", 1, "its certificate carries [10.0.0.2 fd00::2]"},
		{"one has", "a 10.0.0.1", "b", 1, "is the address of agent a"},
		{"none has", "a", "b", 1, "is the address of agent a"},
		{"honest", "a 10.0.0.1", "b 10.0.0.2", 2, ""},
		{"honest, without", "a", "b", 2, ""},
	} {
		s := serveAgents(t, "a", "b")
		reply := func(certificate string, from byte) {
			stream := s.reportAs(t, certificate, certificate[:1])
			for {
				ask, err := stream.Recv()
				if err != nil {
					return
				}
				_ = stream.Send(&agentpb.Rounds{Agent: certificate[:1], About: ask.GetNumber(), Address: []byte{10, 0, 0, from}}) // the end is for the receiver
			}
		}
		go reply(c.honest, 1)
		s.asked(t, 1)
		go reply(c.other, c.claims)
		for range 2 {
			for _, x := range s.asked(t, 2) {
				switch {
				case x.agent == "a" && x.Wrong != nil:
					t.Errorf("%s: the honest one is refused: %v", c.name, x.Wrong)
				case x.agent == "b" && (x.Wrong != nil) != (c.want != ""), x.Wrong != nil && !strings.Contains(x.Wrong.Error(), c.want):
					t.Errorf("%s: %v, want %q", c.name, x.Wrong, c.want)
				}
			}
		}
	}
	// The address of a certificate stays that of its agent while that is gone, and it takes it from one that came before.
	s := newSurveys()
	first, owner := s.begin("b", nil), netip.MustParseAddr("10.0.0.1")
	if err := s.claim(first, owner); err != nil {
		t.Fatal(err)
	}
	a := s.begin("a", []net.IP{{10, 0, 0, 1}})
	if err := s.claim(a, owner); err != nil {
		t.Fatal(err)
	}
	s.end(a)
	if err := s.claim(first, owner); err == nil {
		t.Error("the address of an agent that is gone is another's")
	}
}
