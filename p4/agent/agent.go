package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hopscope/hopscope/p4/probe"
)

// Agent sends and receives probes on one interface. Open opens its sockets, Run works until its context ends.
type Agent struct {
	cfg   Config
	log   *slog.Logger
	ends  probe.Ends
	line  *line           // nil without an interface
	stamp *stampAgent     // nil without STAMP
	out   []*probe.Groups // a collector each
	count counters

	pending atomic.Pointer[probe.Work] // for the sender to take over
	work    atomic.Pointer[probe.Work] // that it sends by
	asked   chan chan receivedRounds   // by senders of answers about rounds
	epoch   atomic.Uint32
	beats   atomic.Uint64 // rounds of the sender

	keys      atomic.Pointer[probe.Keys]         // of digests; nil for none
	expected  atomic.Pointer[probe.Expectations] // for the receiver to take over
	fromFiles atomic.Bool                        // so is the plan in force
	loss      atomic.Pointer[probe.Loss]         // by the receiver's last turn
	down      atomic.Bool                        // so is the agent's own line
	unsent    atomic.Pointer[error]              // why the card did not take a probe last
	refuses   atomic.Pointer[string]             // why the port does not take probes at present; nil while it does
	outlets   []*probe.Outlet                    // of reports

	reporting sync.Mutex // what out holds

	mu      sync.Mutex  // what is below
	plan    *probe.Plan // in force; nil for none
	load    probe.Load
	since   time.Time
	from    string
	numbers map[string]uint32 // of the probes that it sends or sent, by id
	refusal string            // why the last plan was refused, until one is accepted
	control controllerStatus
}

// Open opens the sockets of an agent. It needs CAP_NET_RAW, unless no interface is named. Nothing is sent before Run.
func Open(cfg Config, log *slog.Logger) (*Agent, error) {
	if err := cfg.SetName(); err != nil {
		return nil, err
	}
	if err := cfg.check(); err != nil {
		return nil, fmt.Errorf("agent: %w", err)
	}
	a := &Agent{cfg: cfg, log: log, numbers: map[string]uint32{}, asked: make(chan chan receivedRounds), control: controllerStatus{Address: cfg.Controller.Address}}
	a.loss.Store(new(probe.Loss))
	if cfg.Interface != "" {
		if err := a.openLine(); err != nil {
			return nil, fmt.Errorf("agent: %w", err)
		}
	}
	for _, address := range cfg.Collectors {
		if err := a.addCollector(address); err != nil {
			return nil, errors.Join(fmt.Errorf("agent: %w", err), a.Close())
		}
	}
	if cfg.STAMP.Used() {
		x, err := openSTAMP(a)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("agent: %w", err), a.Close())
		}
		a.stamp = x
	}
	return a, nil
}

// openLine opens the sockets of source-routed probes.
func (a *Agent) openLine() error {
	cfg := &a.cfg
	ifi, err := net.InterfaceByName(cfg.Interface)
	if err != nil {
		return fmt.Errorf("interface %s: %w (\"ip link\" lists them)", cfg.Interface, err)
	}
	if err := a.setKeys(); err != nil {
		return err
	}
	if err := a.setEnds(ifi); err != nil {
		return err
	}
	if a.line, err = openLine(cfg, ifi.Index); err != nil {
		a.line = nil // it is closed
		return fmt.Errorf("interface %s: %w", cfg.Interface, err)
	}
	if notice := a.line.notice(); notice != "" {
		a.log.Warn("receive buffer", "problem", notice)
	}
	return nil
}

// setKeys reads the keys of digests, and begins to send them.
func (a *Agent) setKeys() error {
	if a.cfg.DigestKeys == "" {
		return nil
	}
	k, err := probe.ReadKeys(a.cfg.DigestKeys)
	if err != nil {
		return fmt.Errorf("digest_keys: %w", err)
	}
	a.keys.Store(k)
	a.ends.Digests = new(probe.Digester)
	return nil
}

// setEnds finds the addresses that probes have.
func (a *Agent) setEnds(ifi *net.Interface) (err error) {
	e := &a.ends
	e.Mark, e.Checksum = uint8(a.cfg.Mark), a.cfg.Checksum
	if e.ToMAC, err = parseMAC(a.cfg.PeerMAC); err != nil {
		return err
	}
	copy(e.FromMAC[:], ifi.HardwareAddr)
	if a.cfg.Address != "" {
		e.From = netip.MustParseAddr(a.cfg.Address) // Validate has read it
	} else if e.From, err = firstIPv4(ifi); err != nil {
		return err
	}
	e.To = e.From
	if a.cfg.Destination != "" {
		e.To = netip.MustParseAddr(a.cfg.Destination)
	}
	return nil
}

func firstIPv4(ifi *net.Interface) (netip.Addr, error) {
	list, err := ifi.Addrs()
	if err != nil {
		return netip.Addr{}, fmt.Errorf("interface %s: %w", ifi.Name, err)
	}
	for _, x := range list {
		if p, err := netip.ParsePrefix(x.String()); err == nil && p.Addr().Is4() {
			return p.Addr(), nil
		}
	}
	return netip.Addr{}, fmt.Errorf("interface %s has no IPv4 address: name one that probes come from (address)", ifi.Name)
}

// addCollector opens the socket of reports to one collector.
func (a *Agent) addCollector(address string) error {
	c, err := net.Dial("udp", address)
	if err != nil {
		return fmt.Errorf("collector %s: %w", address, err)
	}
	r := &probe.Outlet{Collector: address}
	a.outlets = append(a.outlets, r)
	a.out = append(a.out, &probe.Groups{
		Node: a.cfg.reportedNode(), HWID: uint8(a.cfg.HardwareID), Most: a.cfg.MTU - 28, Conn: c,
		Send: func(b []byte) {
			_, err := c.Write(b)
			r.Sent(err, time.Now(), a.log)
			if err != nil {
				a.count.reportErrors.Add(1)
				return
			}
			a.count.datagrams.Add(1)
		},
	})
	return nil
}

// flush sends the reports that wait for others.
func (a *Agent) flush() {
	a.reporting.Lock()
	defer a.reporting.Unlock()
	for _, g := range a.out {
		g.Flush()
	}
}

// Close closes all sockets. Run must have returned.
func (a *Agent) Close() error {
	var errs []error
	if a.line != nil {
		errs = append(errs, a.line.close())
	}
	if a.stamp != nil {
		errs = append(errs, a.stamp.close())
	}
	for _, g := range a.out {
		errs = append(errs, g.Conn.Close())
	}
	return errors.Join(errs...)
}

// Run sends and receives until ctx ends, and follows the controller if the settings name one.
func (a *Agent) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var loops sync.WaitGroup
	var list []func(context.Context) error
	if a.line != nil {
		list = append(list, a.sendLoop, a.receiveLoop)
	}
	if a.stamp != nil {
		list = append(list, a.stamp.run)
	}
	for _, loop := range list {
		loops.Go(func() { cancel(loop(ctx)) }) // nil means that ctx has ended
	}
	if a.cfg.Controller.Address != "" {
		loops.Go(func() { a.receivePlans(ctx) })
	}
	loops.Wait()
	if err := context.Cause(ctx); !errors.Is(err, context.Canceled) {
		return fmt.Errorf("agent: %w", err)
	}
	return nil
}

// Adopt checks a plan and puts it in force, or refuses it whole and keeps the one before. A plan of the epoch in force is accepted
// once more if it is the same one. From names its origin, for display. It may be called at any time.
func (a *Agent) Adopt(p *probe.Plan, from string) (probe.Load, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	load, err := a.adopt(p, from)
	if err != nil {
		a.refused(p.Epoch, from, err)
		return load, err
	}
	a.count.accepted.Add(1)
	a.from, a.refusal = from, ""
	a.log.Info("plan in force", "epoch", p.Epoch, "from", from, "probes", load.Sends, "detailed", load.Detailed, "send_bps", load.SendBPS)
	return load, nil
}

// refuse notes that a plan was refused before Adopt, such as an undecodable one. An epoch of 0 is unknown.
func (a *Agent) refuse(epoch uint32, from string, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.refused(epoch, from, err)
}

func (a *Agent) refused(epoch uint32, from string, err error) {
	a.count.refused.Add(1)
	a.refusal = fmt.Sprintf("from %s: %v", from, err)
	if epoch > 0 {
		a.refusal = fmt.Sprintf("epoch %d %s", epoch, a.refusal)
	}
	a.log.Error("plan refused; the one before stays in force", "epoch", epoch, "from", from, "error", err.Error(), "in_force", a.epoch.Load())
}

func (a *Agent) adopt(p *probe.Plan, from string) (probe.Load, error) {
	if same, err := p.Follows(a.plan); same || err != nil {
		return a.loadOr(err), err
	}
	limits := a.cfg.Limits()
	load, err := p.Check(&limits)
	if err != nil {
		return load, err
	}
	w, numbers, err := probe.NewWork(p, a.cfg.Name, &a.ends, a.numbers)
	if err != nil {
		return load, err
	}
	a.plan, a.load, a.since, a.numbers = p, load, time.Now(), numbers
	a.epoch.Store(p.Epoch)
	a.fromFiles.Store(from == files)
	a.pending.Store(w)
	a.expected.Store(probe.NewExpectations(p, a.cfg.Name, a.ends.From.As4(), w))
	return load, nil
}

// loadOr is the load of the plan in force, unless there is an error.
func (a *Agent) loadOr(err error) probe.Load {
	if err != nil {
		return probe.Load{}
	}
	return a.load
}

// Beats counts the rounds of the sending loop, at least 50 a second. Without an interface it counts those of the loop
// that counts losses of STAMP, 4 a second.
func (a *Agent) Beats() uint64 { return a.beats.Load() }

// Stats may be called at any time.
func (a *Agent) Stats() Stats {
	s := a.count.now()
	s.Lost = a.loss.Load().Lost
	return s
}

// Status is the status of an agent, for operators.
type Status struct {
	Name, Interface     string
	Address             netip.Addr
	Epoch               uint32 // of the plan in force; 0 for none
	From                string // where that is from
	Since               time.Time
	Load                probe.Load
	Refused             string // why the last plan was refused, if it was
	controller          controllerStatus
	sendBPS, receiveBPS float64    // limits
	Loss                probe.Loss // of the probes that come to it
	Down                bool       // so is its own line
	Unsent              string     // why its port does not take probes at present, in a sentence, or ""
	Unreported          string     // why reports cannot be sent to a collector at present, in a sentence, or ""
}

// Status may be called at any time.
func (a *Agent) Status() Status {
	a.mu.Lock()
	defer a.mu.Unlock()
	refuses := ""
	if why := a.refuses.Load(); why != nil {
		refuses = *why
	}
	unreported := ""
	for _, r := range a.outlets {
		unreported = cmp.Or(unreported, r.Problem())
	}
	return Status{
		Name: a.cfg.Name, Interface: a.cfg.Interface, Address: a.ends.From, Epoch: a.epoch.Load(), From: a.from, Since: a.since, Load: a.load,
		Refused: a.refusal, controller: a.control, sendBPS: a.cfg.SendLimit, receiveBPS: a.cfg.ReceiveLimit,
		Loss: *a.loss.Load(), Down: a.down.Load(), Unsent: refuses, Unreported: unreported,
	}
}
