package loop

import (
	"context"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/hopscope/hopscope/p4/agent/agentpb"
	"github.com/hopscope/hopscope/p4/probe"
)

// roundsStream is the connection of an agent that reports rounds.
type roundsStream struct {
	name string
	life uint64
	own  []netip.Addr  // that its certificate carries; empty where it carries none
	at   netip.Addr    // that it reported last, where its certificate carries none
	asks chan uint64   // numbers of surveys
	gone chan struct{} // closed when another connection has taken its place
}

// survey is one that is under way.
type survey struct {
	number  uint64
	asked   int64
	waits   map[*roundsStream]bool
	answers []Answer
	done    chan struct{} // closed when all have answered
}

// surveys belong to a server.
type surveys struct {
	mu    sync.Mutex // what is below
	conns map[string]*roundsStream
	held  map[netip.Addr]*roundsStream // the connection whose agent's probes come from an address
	lives uint64
	now   *survey // nil for none
	last  uint64
}

func newSurveys() surveys {
	return surveys{conns: map[string]*roundsStream{}, held: map[netip.Addr]*roundsStream{}}
}

// Tell answers agents that report rounds; the service defines its name.
func (s *Server) Tell(stream agentpb.Plans_TellServer) error {
	hello, words, ended, err := receive(stream, s.hold)
	if err != nil {
		return err
	}
	name := hello.GetAgent()
	certificate, err := s.admit(stream.Context(), name)
	if err != nil {
		return err
	}
	t := s.rounds.begin(name, certificate.IPAddresses)
	defer s.rounds.end(t)
	for {
		select {
		case err := <-ended:
			return err
		case <-t.gone:
			return status.Error(codes.Aborted, "the agent has connected anew")
		case m := <-words:
			s.rounds.answered(t, m)
		case number := <-t.asks:
			if err := stream.Send(&agentpb.Ask{Number: number}); err != nil {
				return err
			}
		}
	}
}

// begin takes the place of an earlier connection of the same agent, whose certificate has addresses.
func (s *surveys) begin(name string, own []net.IP) *roundsStream {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lives++
	t := &roundsStream{name: name, life: s.lives, asks: make(chan uint64, 1), gone: make(chan struct{})}
	maps.DeleteFunc(s.held, func(_ netip.Addr, by *roundsStream) bool { return by.name == name })
	for _, ip := range own {
		if a, ok := netip.AddrFromSlice(ip); ok {
			a = a.Unmap()
			t.own = append(t.own, a)
			if by := s.held[a]; by == nil || len(by.own) == 0 {
				s.held[a] = t
			}
		}
	}
	if old := s.conns[name]; old != nil {
		close(old.gone)
		s.left(old)
	}
	s.conns[name] = t
	return t
}

func (s *surveys) end(t *roundsStream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conns[t.name] == t {
		delete(s.conns, t.name)
	}
	s.left(t)
}

// left waits for an agent no longer.
func (s *surveys) left(t *roundsStream) {
	if s.now == nil || !s.now.waits[t] {
		return
	}
	if delete(s.now.waits, t); len(s.now.waits) == 0 {
		close(s.now.done)
	}
}

// answered takes an answer that is waited for.
func (s *surveys) answered(t *roundsStream, m *agentpb.Rounds) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.now == nil || s.now.number != m.GetAbout() || !s.now.waits[t] {
		return // it comes too late
	}
	x := Answer{agent: t.name, Life: t.life, Asked: s.now.asked, Answered: monotonic()}
	if x.Rounds, x.Wrong = probe.RoundsOf(m); x.Wrong == nil {
		x.Wrong = s.claim(t, x.Rounds.Address)
	}
	s.now.answers = append(s.now.answers, x)
	s.left(t)
}

// claim returns why the probes of an agent cannot come from an address. Its certificate carries others, or the address
// is that of another agent. A certificate decides, also while its agent is gone. Without one that has the address, the
// agent that reported it first keeps it as long as it is connected.
func (s *surveys) claim(t *roundsStream, a netip.Addr) error {
	if !a.IsValid() {
		return nil
	}
	if len(t.own) > 0 && !slices.Contains(t.own, a) {
		return fmt.Errorf("its probes come from %v, and its certificate carries %v: issue one with the address, or set address", a, t.own)
	}
	if by := s.held[a]; by != nil && by != t && (len(by.own) > 0 || s.conns[by.name] == by) {
		return fmt.Errorf("its probes come from %v, which is the address of agent %s: set address, or issue certificates with addresses", a, cut(by.name))
	}
	if len(t.own) == 0 {
		if t.at != a && s.held[t.at] == t {
			delete(s.held, t.at)
		}
		t.at, s.held[a] = a, t
	}
	return nil
}

// Survey asks all agents that report rounds for them, and waits for their answers as long as ctx is open. It is for one
// caller, which lets [Settle] pass between two calls.
func (s *Server) Survey(ctx context.Context) []Answer { return s.rounds.survey(ctx) }

func (s *surveys) survey(ctx context.Context) []Answer {
	s.mu.Lock()
	s.last++
	x := &survey{number: s.last, asked: monotonic(), waits: make(map[*roundsStream]bool, len(s.conns)), done: make(chan struct{})}
	for _, t := range s.conns {
		select { // an unsent question is dropped
		case <-t.asks:
		default:
		}
		t.asks <- x.number
		x.waits[t] = true
	}
	s.now = x
	if len(x.waits) == 0 {
		close(x.done)
	}
	s.mu.Unlock()
	select {
	case <-x.done:
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = nil
	return x.answers
}

// FollowRounds asks for rounds once per interval, at least [Settle], until ctx ends, and adds them to the Rounds that
// find the losses. It logs once each reason for which an answer is refused. It also logs once when agents begin, and
// end, to report rounds that they could not send.
func (s *Server) FollowRounds(ctx context.Context, every time.Duration, to *Rounds) {
	t := time.NewTimer(0)
	defer t.Stop()
	logged, unable := "", false
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		wait, cancel := context.WithTimeout(ctx, mostSurvey)
		answers := s.Survey(wait)
		cancel()
		if ctx.Err() != nil {
			return
		}
		for _, err := range to.Survey(answers) {
			if logged != err.Error() {
				logged = err.Error()
				s.log.Warn("rounds of probes are refused", "error", logged)
			}
		}
		if refuses := to.Status().Refuses; (refuses != "") != unable {
			if unable = refuses != ""; unable {
				s.log.Warn("probes are not sent, and accuse no link", "problem", refuses)
			} else {
				s.log.Info("agents send all their probes again")
			}
		}
		t.Reset(max(every, Settle))
	}
}

// mostSurvey is how long the slowest agent is waited for.
const mostSurvey = 5 * time.Second

// began is where the clock of surveys begins.
var began = time.Now()

// monotonic is a clock that is never set, in ns.
func monotonic() int64 { return int64(time.Since(began)) }
