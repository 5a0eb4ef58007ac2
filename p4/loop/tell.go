package loop

import (
	"context"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/hopscope/hopscope/p4/agent"
	"github.com/hopscope/hopscope/p4/agent/agentpb"
)

// telling is the connection of an agent that tells of rounds.
type telling struct {
	name string
	life uint64
	asks chan uint64   // numbers of surveys
	gone chan struct{} // closed when another connection has taken its place
}

// survey is one that is under way.
type survey struct {
	number uint64
	asked  int64
	waits  map[*telling]bool
	told   []Told
	done   chan struct{} // closed when all have answered
}

// surveys belong to a server.
type surveys struct {
	mu    sync.Mutex // what is below
	conns map[string]*telling
	lives uint64
	now   *survey // nil for none
	last  uint64
}

// Tell implements the service.
func (s *Server) Tell(stream agentpb.Plans_TellServer) error {
	hello, words, ended, err := hear(stream, s.hold)
	if err != nil {
		return err
	}
	name := hello.GetAgent()
	if err := s.admit(stream.Context(), name); err != nil {
		return err
	}
	t := s.rounds.begin(name)
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

// begin takes the place of an earlier connection of the same agent.
func (s *surveys) begin(name string) *telling {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lives++
	t := &telling{name: name, life: s.lives, asks: make(chan uint64, 1), gone: make(chan struct{})}
	if old := s.conns[name]; old != nil {
		close(old.gone)
		s.left(old)
	}
	s.conns[name] = t
	return t
}

func (s *surveys) end(t *telling) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conns[t.name] == t {
		delete(s.conns, t.name)
	}
	s.left(t)
}

// left waits for an agent no longer.
func (s *surveys) left(t *telling) {
	if s.now == nil || !s.now.waits[t] {
		return
	}
	if delete(s.now.waits, t); len(s.now.waits) == 0 {
		close(s.now.done)
	}
}

// answered takes an answer that is waited for.
func (s *surveys) answered(t *telling, m *agentpb.Rounds) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.now == nil || s.now.number != m.GetAbout() || !s.now.waits[t] {
		return // it comes too late
	}
	x := Told{Agent: t.name, Life: t.life, Asked: s.now.asked, Answered: monotonic()}
	x.Rounds, x.Wrong = agent.RoundsOf(m)
	s.now.told = append(s.now.told, x)
	s.left(t)
}

// Survey asks all agents that tell of rounds what became of these, and waits for their answers as long as ctx is open. It is for one
// caller, who lets [Settle] pass between two calls.
func (s *Server) Survey(ctx context.Context) []Told { return s.rounds.survey(ctx) }

func (s *surveys) survey(ctx context.Context) []Told {
	s.mu.Lock()
	s.last++
	x := &survey{number: s.last, asked: monotonic(), waits: make(map[*telling]bool, len(s.conns)), done: make(chan struct{})}
	for _, t := range s.conns {
		select { // a question that was not sent off is not asked any more
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
	return x.told
}

// FollowRounds asks for rounds once in a time, [Settle] at least, until ctx ends, and gives them to who finds out what got lost. Each reason for
// which an answer is refused is said once.
func (s *Server) FollowRounds(ctx context.Context, every time.Duration, to *Rounds) {
	t := time.NewTimer(0)
	defer t.Stop()
	said := ""
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		wait, cancel := context.WithTimeout(ctx, mostSurvey)
		told := s.Survey(wait)
		cancel()
		if ctx.Err() != nil {
			return
		}
		for _, err := range to.Survey(told) {
			if said != err.Error() {
				said = err.Error()
				s.log.Warn("rounds of probes are refused", "error", said)
			}
		}
		t.Reset(max(every, Settle))
	}
}

// mostSurvey is how long the slowest agent is waited for.
const mostSurvey = 5 * time.Second

// began is where the clock of surveys begins.
var began = time.Now()

// monotonic is a clock that nobody sets, in ns.
func monotonic() int64 { return int64(time.Since(began)) }
