package loop

import (
	"context"
	"crypto/x509"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/hopscope/hopscope/p4/agent/agentpb"
	"github.com/hopscope/hopscope/p4/probe"
	"github.com/hopscope/hopscope/planner/control"
)

// Server is the gRPC server that agents follow. An agent is known by its certificate, which has to carry its name. Of two connections
// of one agent the later one is served.
type Server struct {
	agentpb.UnimplementedPlansServer

	post func(control.Event)
	log  *slog.Logger
	hold time.Duration // that an agent has for its first word

	rounds surveys

	mu     sync.Mutex // what is below
	known  map[string]bool
	conns  map[string]*following
	limits map[string]probe.Limits
}

// following is the connection of an agent.
type following struct {
	name    string
	wake    chan struct{}
	gone    chan struct{} // closed when another connection has taken its place
	inForce uint32        // by the agent's last word; by the server's lock, as the rest
	next    *sending      // that is to go out; a later plan takes its place
	waits   sending       // that went out last
}

type sending struct {
	request control.Request
	plan    *probe.Plan
}

// firstWord is how long an agent may take to identify itself.
const firstWord = 10 * time.Second

// NewServer makes a server for the agents of a network, which posts their messages.
func NewServer(agents []string, post func(control.Event), log *slog.Logger) *Server {
	s := &Server{post: post, log: log, hold: firstWord, conns: map[string]*following{}, limits: map[string]probe.Limits{},
		rounds: newSurveys()}
	s.Allow(agents)
	return s
}

// Allow replaces the agents that may follow. An agent that follows already stays connected. For newly allowed agents
// that are connected, it posts to the loop that they are there. The loop must already have their network.
func (s *Server) Allow(agents []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.known
	s.known = make(map[string]bool, len(agents))
	for _, a := range agents {
		s.known[a] = true
		if s.conns[a] != nil && !before[a] {
			s.post(control.Up{Device: control.Device{Kind: control.Agent, Name: a}})
		}
	}
}

// receive reads what comes over a stream of an agent until it ends, and waits for the first message, which identifies the agent.
func receive[M any](stream interface {
	Recv() (*M, error)
	Context() context.Context
}, hold time.Duration) (hello *M, words <-chan *M, ended <-chan error, err error) {
	messages, end := make(chan *M), make(chan error, 1)
	go func() {
		for {
			m, err := stream.Recv()
			if err != nil {
				end <- err
				return
			}
			select {
			case messages <- m:
			case <-stream.Context().Done():
				end <- stream.Context().Err()
				return
			}
		}
	}()
	select {
	case hello = <-messages:
		return hello, messages, end, nil
	case err := <-end:
		return nil, nil, nil, err
	case <-time.After(hold):
		return nil, nil, nil, status.Error(codes.DeadlineExceeded, "the agent did not send its name")
	}
}

// Follow implements the service.
func (s *Server) Follow(stream agentpb.Plans_FollowServer) error {
	hello, words, ended, err := receive(stream, s.hold)
	if err != nil {
		return err
	}
	if _, err := s.admit(stream.Context(), hello.GetAgent()); err != nil {
		s.log.Warn("agent refused", "agent", cut(hello.GetAgent()), "error", err.Error())
		return err
	}
	f := s.begin(hello)
	s.log.Info("agent connected", "agent", f.name, "in_force", hello.GetInForce())
	err = s.serve(stream, f, words, ended)
	why := "it ended the stream"
	if err != nil {
		why = err.Error()
	}
	s.end(f, why)
	return err
}

// admit returns the certificate of an agent, or the reason why it may not follow.
func (s *Server) admit(ctx context.Context, name string) (*x509.Certificate, error) {
	s.mu.Lock()
	known := s.known[name]
	s.mu.Unlock()
	if !known {
		return nil, status.Errorf(codes.PermissionDenied, "the network has no agent %q", cut(name))
	}
	p, ok := peer.FromContext(ctx)
	if !ok {
		return nil, status.Error(codes.Unauthenticated, "the connection has no certificate")
	}
	info, ok := p.AuthInfo.(credentials.TLSInfo)
	if !ok || len(info.State.VerifiedChains) == 0 {
		return nil, status.Error(codes.Unauthenticated, "the connection has no certificate")
	}
	c := info.State.PeerCertificates[0]
	if err := certifies(c, name); err != nil {
		return nil, status.Errorf(codes.PermissionDenied, "the certificate does not carry the name of agent %q: %v", cut(name), err)
	}
	return c, nil
}

// certifies holds a name against those of a certificate: its alternative names, or the common name where it has none.
func certifies(c *x509.Certificate, name string) error {
	if len(c.DNSNames) == 0 && c.Subject.CommonName == name {
		return nil
	}
	return c.VerifyHostname(name)
}

// begin takes the place of an earlier connection of the same agent.
func (s *Server) begin(hello *agentpb.Answer) *following {
	f := &following{name: hello.GetAgent(), wake: make(chan struct{}, 1), gone: make(chan struct{}), inForce: hello.GetInForce()}
	d := control.Device{Kind: control.Agent, Name: f.name}
	s.mu.Lock()
	defer s.mu.Unlock()
	if old := s.conns[f.name]; old != nil {
		close(old.gone)
		s.post(control.Down{Device: d, Why: "it has connected anew"})
	}
	s.conns[f.name] = f
	if l := hello.GetLimits(); l != nil {
		s.limits[f.name] = probe.Limits{Name: f.name, SendBPS: l.GetSendBps(), ReceiveBPS: l.GetReceiveBps(), ProbesPerSec: l.GetProbesPerSecond(),
			Probes: int(l.GetProbes()), MTU: int(l.GetMtu())}
	}
	s.post(control.Up{Device: d})
	return f
}

// end forgets a connection.
func (s *Server) end(f *following, why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conns[f.name] == f {
		delete(s.conns, f.name)
		s.post(control.Down{Device: control.Device{Kind: control.Agent, Name: f.name}, Why: cut(why)})
	}
}

// serve sends plans and takes answers until either side ends.
func (s *Server) serve(stream agentpb.Plans_FollowServer, f *following, words <-chan *agentpb.Answer, ended <-chan error) error {
	for {
		select {
		case err := <-ended:
			return err
		case <-f.gone:
			return status.Error(codes.Aborted, "the agent has connected anew")
		case m := <-words:
			s.answered(f, m)
		case <-f.wake:
			s.mu.Lock()
			next := f.next
			f.next = nil
			if next != nil {
				f.waits = *next
			}
			s.mu.Unlock()
			if next == nil {
				continue
			}
			m, err := next.plan.Proto()
			if err != nil {
				s.refuse(f, next.request, err.Error())
				continue
			}
			if err := stream.Send(m); err != nil {
				return err
			}
		}
	}
}

func (s *Server) refuse(f *following, r control.Request, why string) {
	s.post(control.Refused{Request: r, Device: control.Device{Kind: control.Agent, Name: f.name}, Why: cut(why)})
}

// answered takes the word of an agent about a plan.
func (s *Server) answered(f *following, m *agentpb.Answer) {
	d := control.Device{Kind: control.Agent, Name: f.name}
	s.mu.Lock()
	f.inForce = m.GetInForce()
	waits := f.waits
	s.mu.Unlock()
	if waits.plan == nil || waits.plan.Epoch != m.GetAbout() {
		return // about a plan that another one has replaced
	}
	switch {
	case m.GetRefused() != "":
		s.post(control.Refused{Request: waits.request, Device: d, Why: cut(m.GetRefused())})
	case m.GetInForce() != m.GetAbout():
		s.post(control.Refused{Request: waits.request, Device: d, Why: fmt.Sprintf("it says that epoch %d is in force", m.GetInForce())})
	default:
		s.post(control.Acked{Request: waits.request, Device: d})
	}
}

// SendPlan implements [Agents].
func (s *Server) SendPlan(name string, r control.Request, p *probe.Plan) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.conns[name]
	if f == nil {
		return // the loop learns that it is gone
	}
	f.next = &sending{r, p}
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// ReadPlan implements [Agents].
func (s *Server) ReadPlan(name string, r control.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f := s.conns[name]; f != nil {
		s.post(control.ReadBack{Request: r, Device: control.Device{Kind: control.Agent, Name: name}, Epoch: f.inForce})
	}
}

// Limits implements [Agents].
func (s *Server) Limits(name string) (probe.Limits, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l, ok := s.limits[name]
	return l, ok
}

// cut truncates foreign text, so that it cannot fill logs and journal.
func cut(s string) string {
	const most = 500
	if len(s) > most {
		return strings.ToValidUTF8(s[:most], "") + "..." // not within a character
	}
	return s
}
