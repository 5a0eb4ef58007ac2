package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/hopscope/hopscope/collector/fleet/console"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/fleet"
	"github.com/hopscope/hopscope/ingest"
	logs "github.com/hopscope/hopscope/ingest/kafka"
	"github.com/hopscope/hopscope/ingest/kafka/conn"
	"github.com/hopscope/hopscope/ingest/kafka/lead"
	"github.com/hopscope/hopscope/p4/loop"
	"github.com/hopscope/hopscope/p4/steer"
	"github.com/hopscope/hopscope/planner/control"
)

const (
	controlGroup = "control"       // of those who stand for being in charge, without the prefix
	askFleet     = 5 * time.Second // the longest wait for the log and the group
	askStandby   = 2 * time.Second // the same for who is in charge
	firstReading = 30 * time.Second
	mostMember   = 100 // bytes of a name that are shown
)

// charge is the time in which this control is in charge of a fleet's probes. Without a fleet it is nil: then it always is.
type charge struct {
	client *conn.Client
	term   *lead.Term
	number uint64
	put    uint32 // epoch that was written last

	refused string // why what the files say is not what is steered; "" where it is
	hangup  <-chan struct{}
}

// chargePlan is what the log keeps of a plan: its probes are those of the files, but for which of them look closer.
type chargePlan struct {
	Network  string   `json:"network"`
	Why      string   `json:"why"`
	Detailed []string `json:"detailed"`
}

// runControlFleet stands for being in charge, and steers whenever it is.
func runControlFleet(ctx context.Context, files *controlFiles, x *steer.Network, j *loop.Journal, log *slog.Logger) error {
	cfg := files.now.Load()
	files.last.Store(x)
	name := cfg.Fleet.Name
	if name == "" {
		name, _ = os.Hostname() // for people alone
	}
	client, err := cfg.Fleet.Kafka.Dial("hopscope-control")
	if err != nil {
		return wrongInput(fmt.Errorf("fleet.kafka.%w", err))
	}
	defer client.Close()
	topic := client.Topic(conn.Plans)
	lc := logs.DefaultLogConfig()
	lc.Timeout = cfg.Fleet.Kafka.Timeout
	kafka := logs.NewLog(client.Client, lc)
	members := lead.Config{Log: kafka, Topic: topic, Name: name, Timeout: askFleet, Hold: 2 * cfg.Fleet.Session, Logger: log}
	by := &standby{who: lead.NewObserver(members), files: files, steering: make(chan struct{}, 1), log: log}
	page, err := serveControl(cfg.Admin.Listen, j, by.now)
	if err != nil {
		return err
	}
	defer page.Close()
	if _, err := kafka.Partitions(ctx, topic); err != nil {
		err = client.Explain(err, conn.Describe(topic))
		if e, ok := errors.AsType[*conn.Error](err); ok && e.NeedsPerson() {
			return err
		}
		log.Warn("waiting for Kafka", "error", err.Error())
	}
	members.Group = logs.NewGroup(client.Client, kafka, logs.GroupConfig{
		Name: client.Topic(controlGroup), Topics: map[string]int{topic: 1}, Session: cfg.Fleet.Session, Rebalance: cfg.Fleet.Session,
	}, log)
	until, cancel := context.WithCancel(ctx)
	followed := make(chan struct{})
	go func() { defer close(followed); by.follow(until) }()
	defer func() { cancel(); <-followed }()
	log.Info("stands for being in charge of the probes", "name", name, "kafka", cfg.Fleet.Kafka.Target(), "admin", page.at())
	var own error // of steering
	err = lead.Run(ctx, members, func(ctx context.Context, t *lead.Term) error {
		c := &charge{client: client, term: t, number: t.Number()}
		by.own.Store(c.number)
		x, refused, err := by.network()
		if err != nil {
			own = err
			return own
		}
		c.refused, c.hangup = refused, by.steering
		by.steers.Store(true)
		own = runSteering(ctx, files, x, c, page, log)
		by.steers.Store(false)
		if ctx.Err() != nil && until.Err() == nil { // it stands by again, and says what is wrong with its files
			_, _, err = files.take()
			by.refuse(err)
		}
		by.own.Store(t.Number())            // it may have grown
		if own != nil && ctx.Err() != nil { // another one is in charge all the same
			log.Error("steering ended with an error", "error", own.Error())
			own = nil
		}
		return own
	})
	if own != nil {
		return own
	}
	return client.Explain(err, conn.Join(client.Topic(controlGroup)))
}

// standby says why a control of a fleet steers nothing.
type standby struct {
	who   *lead.Observer
	own   atomic.Uint64 // the last term of this control, 0 for none
	files *controlFiles
	log   *slog.Logger

	steers   atomic.Bool   // it does not stand by
	steering chan struct{} // SIGHUP, where it steers
	refused  atomic.Pointer[string]
}

// follow reads the files again at every SIGHUP while another control is in charge, so that what is wrong with them is said before this one is,
// and hands it to who steers otherwise.
func (s *standby) follow(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.files.hangup:
		}
		if s.steers.Load() {
			select {
			case s.steering <- struct{}{}:
			default: // one is enough
			}
			continue
		}
		x, restart, err := s.files.take()
		s.refuse(err)
		if err == nil {
			s.files.Report(x, restart, s.log)
		}
	}
}

// refuse notes why the files were not taken, or that they were.
func (s *standby) refuse(err error) (why string) {
	if err != nil {
		why = err.Error()
		s.log.Error("settings not reloaded; this control would go on with those before", "error", why)
	}
	s.refused.Store(&why)
	return why
}

// network is what is steered from now on: what the files say now, or what they said last where that does not fit. A controller begins anew:
// what it knew is from before.
func (s *standby) network() (x *steer.Network, refused string, err error) {
	x, _, err = s.files.take()
	if refused = s.refuse(err); err != nil {
		x = s.files.last.Load()
	}
	x, err = x.Anew()
	return x, refused, err
}

// now asks the topic of the fleet, and not for longer than an operator waits.
func (s *standby) now(ctx context.Context) loop.Standby {
	x := s.charge(ctx)
	if why := s.refused.Load(); why != nil {
		x.Refused = *why
	}
	return x
}

func (s *standby) charge(ctx context.Context) loop.Standby {
	ctx, cancel := context.WithTimeout(ctx, askStandby)
	defer cancel()
	l, err := s.who.Leader(ctx)
	switch {
	case err != nil:
		return loop.Standby{Why: "this control stands by, and cannot read who is in charge: " + err.Error()}
	case l.Term == 0:
		return loop.Standby{Why: "this control stands by, and nobody has been in charge yet"}
	case l.Term <= s.own.Load():
		return loop.Standby{Why: "this control is not in charge any more, and nobody else has taken over yet"}
	}
	name := plain(strings.ToValidUTF8(l.Name[:min(len(l.Name), mostMember)], ""), false) // whoever may write to the topic chose it
	return loop.Standby{Why: fmt.Sprintf("this control stands by: %s is in charge (term %d)", name, l.Term), InCharge: name, Term: l.Term}
}

// seed adds what the fleet knows of earlier lives to what the journal of this control knows.
func (c *charge) seed(s control.Seed, network string, log *slog.Logger) control.Seed {
	if c == nil {
		return s
	}
	s.Epoch = max(s.Epoch, c.term.Epoch())
	if b := c.term.Plan(); b != nil {
		var p chargePlan
		err := json.Unmarshal(b, &p)
		if err != nil {
			log.Warn("which probes looked closer is not known", "topic", c.client.Topic(conn.Plans), "error", err.Error())
		}
		s.Detailed = p.Detailed
		if err == nil && p.Network != network {
			log.Warn("the control before had another network; that of the files here comes in its place", "before", plain(p.Network, false), "network", network)
		}
	}
	return s
}

// election is what switches know the time in charge by.
func (c *charge) election() uint64 {
	if c == nil {
		return 0
	}
	return c.number
}

// fence writes each plan to the log before anything of it leaves, and asks before anything else leaves.
func (c *charge) fence(ctx context.Context) func(p *control.Plan) error {
	if c == nil {
		return nil
	}
	return func(p *control.Plan) error {
		if p == nil || p.Epoch == c.put {
			return c.term.Holds(ctx)
		}
		record := chargePlan{p.Network.Name, p.Why, p.Detailed}
		b, err := json.Marshal(&record)
		if err == nil && len(b) > lead.MaxPlan { // which probes look closer is a hint for the next one
			record.Detailed = nil
			b, err = json.Marshal(&record)
		}
		if err == nil {
			err = c.term.Put(ctx, p.Epoch, b)
		}
		if err == nil {
			c.put = p.Epoch
		}
		return err
	}
}

// standDown says in the journal why a control steers no longer.
func (c *charge) standDown(ctx context.Context, l *loop.Loop, err error) error {
	if cause := context.Cause(ctx); c != nil && errors.Is(cause, lead.ErrLost) {
		l.Post(control.Superseded{Why: cause.Error()})
		l.Step(time.Now().UnixNano())
	}
	return err
}

// followFindings takes findings from the merged windows of the fleet until ctx ends, and returns when it has those of the past.
func (c *charge) followFindings(ctx context.Context, cfg *controlConfig, to *steer.Suspects, log *slog.Logger) {
	f := &findingsFeed{topic: c.client.Topic(conn.Series), to: to, log: log, codec: fleet.NewCodec(consoleValue, consoleLimits), caught: make(chan struct{})}
	lc := logs.DefaultLogConfig()
	lc.HeaderKey, lc.Timeout = fleet.HeaderKey, cfg.Fleet.Kafka.Timeout
	f.kafka = logs.NewLog(c.client.Client, lc)
	go f.follow(ctx, time.Now().Add(-cfg.Fleet.LookBack).UnixNano())
	wait := time.NewTimer(firstReading)
	defer wait.Stop()
	select {
	case <-f.caught:
	case <-ctx.Done():
	case <-wait.C:
		log.Warn("the findings of the fleet are not read yet; the loop begins with those that are", "topic", f.topic)
	}
}

// findingsFeed reads the findings of a fleet.
type findingsFeed struct {
	kafka  *logs.Log
	topic  string
	to     *steer.Suspects
	log    *slog.Logger
	codec  *fleet.Codec
	caught chan struct{} // closed at the end of the log
	said   string
}

// follow reads from a time on. What cannot be read stays what it was: attention does not go back because Kafka is away.
func (f *findingsFeed) follow(ctx context.Context, from int64) {
	wait := console.Backoff
	fail := func(err error) {
		if err != nil && ctx.Err() == nil && f.said != err.Error() {
			f.said = err.Error()
			f.log.Error("no findings; the suspects stay what they are", "error", f.said)
		}
		wait.Sleep(ctx)
	}
	var reader ingest.LogReader
	for caught := false; ctx.Err() == nil; {
		if reader == nil {
			offset, err := f.kafka.OffsetAt(ctx, f.topic, 0, from)
			if err != nil {
				fail(err)
				continue
			}
			reader = f.kafka.Reader(f.topic, 0, offset)
		}
		messages, err := reader.Next(ctx)
		if err != nil {
			fail(err)
			continue
		}
		if wait.Reset(); f.said != "" {
			f.said = ""
			f.log.Info("findings again")
		}
		for i := range messages {
			if err := f.take(&messages[i]); err != nil {
				f.log.Debug("a record of the series is passed over", "offset", messages[i].Offset, "error", err.Error())
			}
		}
		if !caught && reader.Offset() >= reader.High() {
			caught = true
			close(f.caught)
		}
	}
}

// take keeps the findings of a window. They are told once, so that revisions have none.
func (f *findingsFeed) take(m *ingest.Message) error {
	r, err := record(m)
	if err != nil || r.Head.Kind != fleet.Whole || r.Head.Revision > 0 {
		return err
	}
	if fleet.Sum(r.Value) != r.Head.Sum {
		return fleet.ErrSum
	}
	d, err := fleet.DecodeWhole(f.codec, r.Value)
	if err != nil {
		return err
	}
	var list []inference.Finding
	for i := range d.Findings {
		found, ferr := d.Findings[i].Finding()
		if ferr != nil {
			err = errors.Join(err, ferr)
			continue
		}
		list = append(list, found)
	}
	f.to.Observe(nil, list)
	return err
}
