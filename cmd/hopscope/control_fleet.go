package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/hopscope/hopscope/collector/fleet/console"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/fleet"
	brokers "github.com/hopscope/hopscope/ingest/kafka"
	"github.com/hopscope/hopscope/p4/loop"
	"github.com/hopscope/hopscope/p4/steer"
)

const (
	controlGroup = "control"       // of the candidates for being in charge, without the prefix
	askFleet     = 5 * time.Second // the longest wait for the log and the group
)

// runControlFleet stands for being in charge, and steers whenever it is.
func runControlFleet(ctx context.Context, files *controlFiles, x *steer.Network, j *loop.Journal, log *slog.Logger) error {
	cfg := files.now.Load()
	files.last.Store(x)
	name := cfg.Fleet.Name
	if name == "" {
		name, _ = os.Hostname() // for display alone
	}
	client, err := cfg.Fleet.Kafka.Dial("hopscope-control")
	if err != nil {
		return wrongInput(fmt.Errorf("fleet.kafka.%w", err))
	}
	defer client.Close()
	topic := client.Topic(brokers.Plans)
	lc := brokers.DefaultLogConfig()
	lc.Timeout = cfg.Fleet.Kafka.Timeout
	kafka := brokers.NewLog(client.Client, lc)
	members := brokers.LeadConfig{Log: kafka, Topic: topic, Name: name, Timeout: askFleet, Hold: 2 * cfg.Fleet.Session, Logger: log}
	by := &steer.Standby{InCharge: inCharge(brokers.NewObserver(members)), Settings: files, Last: files.last.Load, Hangup: files.hangup, Steering: make(chan struct{}, 1), Log: log}
	page, err := serveControl(cfg.Admin.Listen, j, by.Now)
	if err != nil {
		return err
	}
	defer page.Close()
	if _, err := kafka.Partitions(ctx, topic); err != nil {
		err = client.Explain(err, brokers.ToDescribe(topic))
		if e, ok := errors.AsType[*brokers.Error](err); ok && e.NeedsPerson() {
			return err
		}
		log.Warn("waiting for Kafka", "error", err.Error())
	}
	members.Group = brokers.NewGroup(client.Client, kafka, brokers.GroupConfig{
		Name: client.Topic(controlGroup), Topics: map[string]int{topic: 1}, Session: cfg.Fleet.Session, Rebalance: cfg.Fleet.Session,
	}, log)
	until, cancel := context.WithCancel(ctx)
	followed := make(chan struct{})
	go func() { defer close(followed); by.Run(until) }()
	defer func() { cancel(); <-followed }()
	log.Info("standing by to take charge of the probes", "name", name, "kafka", cfg.Fleet.Kafka.Target(), "admin", page.at())
	var own error // of steering
	err = brokers.Lead(ctx, members, func(ctx context.Context, t *brokers.Term) error {
		c := steer.NewCharge(steer.Charge{Term: t, Topic: topic, MaxPlan: brokers.MaxPlan, Lost: brokers.ErrLost})
		by.Own.Store(c.Election())
		x, refused, err := by.Network()
		if err != nil {
			own = err
			return own
		}
		by.Steers.Store(true)
		own = runSteering(ctx, files, x, &fleetTerm{c, client, refused, by.Steering}, page, log)
		by.Steers.Store(false)
		if ctx.Err() != nil && until.Err() == nil { // it stands by again, and logs what is wrong with its files
			by.Reread()
		}
		by.Own.Store(t.Number())            // it may have grown
		if own != nil && ctx.Err() != nil { // another one is in charge all the same
			log.Error("steering ended with an error", "error", own.Error())
			own = nil
		}
		return own
	})
	if own != nil {
		return own
	}
	return client.Explain(err, brokers.ToJoin(client.Topic(controlGroup)))
}

// inCharge calls an observer.
func inCharge(o *brokers.Observer) func(context.Context) (string, uint64, error) {
	return func(ctx context.Context) (string, uint64, error) {
		l, err := o.Leader(ctx)
		return l.Name, l.Term, err
	}
}

// fleetTerm is the additional state of a control in charge of a fleet.
type fleetTerm struct {
	charge  *steer.Charge
	client  *brokers.Client
	refused string // why the settings are refused; "" where they are not
	hangup  <-chan struct{}
}

// followFindings keeps the findings of the merged windows of the fleet until ctx ends, and returns when it has those of the past.
func (t *fleetTerm) followFindings(ctx context.Context, cfg *controlConfig, to *steer.Suspects, log *slog.Logger) {
	lc := brokers.DefaultLogConfig()
	lc.HeaderKey, lc.Timeout = fleet.HeaderKey, cfg.Fleet.Kafka.Timeout
	f := &console.Findings{Log: brokers.NewLog(t.client.Client, lc), Topic: t.client.Topic(brokers.Series), Logger: log,
		Observe: func(list []inference.Finding) { to.Observe(nil, list) }}
	f.Start(ctx, time.Now().Add(-cfg.Fleet.LookBack).UnixNano())
}
