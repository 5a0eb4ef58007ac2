package rate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hopscope/hopscope/bench/harness"
)

// comparison is two receivers of a round, and what of them is divided.
type comparison struct {
	over, under string
	cost        bool // processor time a datagram, rather than datagrams a second
	aim         string
}

// pairs are what [UDP] compares with pairs of rounds.
var pairs = []comparison{
	{"ring-pipeline", "ring-bare", false, ">= 0.9"},
	{"xdp-pipeline", "xdp-bare", false, ">= 0.9"},
	{"pipeline", "bare", false, ">= 0.85"},
	{"ring-pipeline", "pipeline", true, "<= 0.5"},
	{"ring", "discard", true, ""},
	{"ring", "ring-bare", false, ""},
	{"xdp", "xdp-bare", false, ""},
	{"discard", "bare", false, ""},
}

// onTheirWay is the frames on their way to a receiver that sets the pace. It is far below what socket and ring hold, and as much as
// comes while a receiver naps.
const onTheirWay = 4096

// fullShare is the share of looks at the receiver above which it, and not the sender, was the limit.
const fullShare = 0.05

// steady is a receiver that has as many datagrams as it takes.
type steady struct {
	Receiver string
	Rate     float64 // datagrams a second
	Cost     float64 // processor time of the process, ns a datagram
	Lost     uint64  // by the kernel on its way to the receiver
	Full     float64 // share of looks at which the receiver had no room
}

func (s *steady) limit() string {
	if s.Full > fullShare {
		return "receiver"
	}
	return "sender"
}

// measureSteady sends to a receiver as many datagrams as it takes, and measures after as long a warm-up.
func measureSteady(o *UDP, name string) (r steady, err error) {
	load, err := newLoad(o)
	if err != nil {
		return r, err
	}
	frames, err := newFrameSender("lo", load, turns(o.traffic.Flows))
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, frames.close()) }()
	t, err := startTarget(o, name, frames)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, t.stop()) }()
	if err := frames.fill(t.addr, load, payloads[o.payload]); err != nil {
		return r, err
	}
	period := time.Duration(o.seconds * float64(time.Second))
	type moment struct {
		at       time.Time
		received uint64
		cpu      time.Duration
	}
	var watched error
	read := func() (m moment) {
		var err error
		m = moment{at: time.Now(), received: frames.received.Load()}
		m.cpu, err = taskTime(t.cmd.Process.Pid)
		watched = errors.Join(watched, err)
		return m
	}
	dropped := func() uint64 {
		c, err := t.drops()
		watched = errors.Join(watched, err)
		return c
	}
	before, begin := dropped(), time.Now()
	var first, last moment
	sent, err := frames.send(sending{period: 2*period + 50*time.Millisecond, window: onTheirWay}, func() {
		if watched != nil {
			return
		}
		r.Lost = dropped() - before
		frames.control.lost = r.Lost
		switch passed := time.Since(begin); {
		case first.at.IsZero() && passed >= period:
			first = read()
		case !first.at.IsZero() && last.at.IsZero() && time.Since(first.at) >= period:
			last = read()
		}
	})
	if err = errors.Join(err, watched); err != nil {
		return r, err
	}
	if last.at.IsZero() {
		last = read()
	}
	n := float64(last.received - first.received)
	if n == 0 {
		return r, fmt.Errorf("%s received nothing", name)
	}
	r.Receiver, r.Rate, r.Cost, r.Full = name, n/last.at.Sub(first.at).Seconds(), float64(last.cpu-first.cpu)/n, sent.full
	return r, nil
}

// taskTime is the processor time of a process, to the nanosecond.
func taskTime(pid int) (sum time.Duration, err error) {
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	if err != nil {
		return 0, err
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if os.IsNotExist(err) {
			continue // the thread ended
		}
		if err != nil {
			return 0, err
		}
		run, _, _ := strings.Cut(string(b), " ")
		n, err := strconv.ParseInt(run, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("%s: %w", file, err)
		}
		sum += time.Duration(n)
	}
	return sum, nil
}

// PairsResult is the receivers of all pairs, in rounds.
type PairsResult struct {
	Rounds [][]steady
	pairs  []comparison
}

// runPairs measures every receiver of the pairs once a round, in a turn that begins at another one each time.
func runPairs(ctx context.Context, o *UDP) (*PairsResult, error) {
	r := &PairsResult{}
	var names []string
	for _, p := range pairs {
		if o.which == "" || slices.Contains(o.receivers, p.over) && slices.Contains(o.receivers, p.under) {
			r.pairs = append(r.pairs, p)
			for _, name := range []string{p.under, p.over} {
				if !slices.Contains(names, name) {
					names = append(names, name)
				}
			}
		}
	}
	for round := range o.pairs {
		list := make([]steady, len(names))
		for i := range names {
			at := (i + round) % len(names)
			if err := ctx.Err(); err != nil {
				return r, err
			}
			var err error
			if list[at], err = measureSteady(o, names[at]); err != nil {
				return r, fmt.Errorf("%s: %w", names[at], err)
			}
		}
		r.Rounds = append(r.Rounds, list)
		fmt.Fprintf(os.Stderr, "round %d of %d\n", round+1, o.pairs)
	}
	return r, nil
}

// of lists a value of a receiver, by round.
func (r *PairsResult) of(name string, value func(s *steady) float64) (list []float64) {
	for _, round := range r.Rounds {
		for i := range round {
			if round[i].Receiver == name {
				list = append(list, value(&round[i]))
			}
		}
	}
	return list
}

// ratios are those of a pair, by round.
func (r *PairsResult) ratios(p comparison) []float64 {
	value := func(s *steady) float64 { return s.Rate }
	if p.cost {
		value = func(s *steady) float64 { return s.Cost }
	}
	over, under := r.of(p.over, value), r.of(p.under, value)
	for i := range over {
		over[i] /= under[i]
	}
	return over
}

// print writes the ratios of the pairs, and the receivers.
func (r *PairsResult) print(w io.Writer) error {
	err := harness.PrintTable(w, fmt.Sprintf("Receivers in turns, median of %d pairs", len(r.Rounds)), func(t io.Writer) error {
		fmt.Fprintln(t, "what\treceiver\tover\tratio\t95 %, from\tto\taim\t")
		for _, p := range r.pairs {
			what := "datagrams a second"
			if p.cost {
				what = "processor time a datagram"
			}
			ratios := r.ratios(p)
			low, high := harness.MedianInterval(ratios)
			fmt.Fprintf(t, "%s\t%s\t%s\t%.2f\t%.2f\t%.2f\t%s\t\n", what, p.over, p.under, harness.Median(ratios), low, high, p.aim)
		}
		return nil
	})
	if err != nil || len(r.Rounds) == 0 {
		return err
	}
	return harness.PrintTable(w, "Receivers", func(t io.Writer) error {
		fmt.Fprintln(t, "receiver\tdatagrams /s\tprocessor time, ns\tlost\tlimit\t")
		for i := range r.Rounds[0] {
			name := r.Rounds[0][i].Receiver
			lost, limits := 0.0, map[string]int{}
			for _, x := range r.of(name, func(s *steady) float64 { limits[s.limit()]++; return float64(s.Lost) }) {
				lost += x
			}
			limit := "receiver"
			if limits["sender"] > limits["receiver"] {
				limit = "sender"
			}
			fmt.Fprintf(t, "%s\t%.0f\t%.0f\t%.0f\t%s\t\n", name, harness.Median(r.of(name, func(s *steady) float64 { return s.Rate })), harness.Median(r.of(name, func(s *steady) float64 { return s.Cost })), lost, limit)
		}
		return nil
	})
}
