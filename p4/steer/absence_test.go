package steer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/hopscope/hopscope/internal/testkit"
	"github.com/hopscope/hopscope/p4/emu"
	"github.com/hopscope/hopscope/p4/emu/scenario"
	"github.com/hopscope/hopscope/p4/loop"
	"github.com/hopscope/hopscope/planner/control"
)

// life is a control of an emulated network on virtual time, which can be ended and begun again while the network runs.
type life struct {
	*Emulated
	t    *testing.T
	now  time.Duration
	path string // of the journal

	wrong func([]loop.Answer) []loop.Answer // what happens to the next survey; nil for nothing
}

const lifeStep = 20 * time.Millisecond

func newLife(t *testing.T, seed uint64, script []emu.Fault) *life {
	t.Helper()
	cfg := emu.DefaultConfig()
	cfg.PacketRate, cfg.Script, cfg.Repeat = 1, script, 0
	x := &life{t: t, path: filepath.Join(t.TempDir(), "journal")}
	var err error
	if x.Emulated, err = NewEmulated(cfg, seed, x.open(), slog.New(slog.DiscardHandler), x.clock); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = x.Journal.Close() })
	return x
}

func (x *life) clock() int64 { return int64(x.now) + 1 }

func (x *life) open() *loop.Journal {
	j, err := loop.OpenJournal(x.path, 1<<20, 1)
	if err != nil {
		x.t.Fatal(err)
	}
	return j
}

// second begins a life of the control that knows what the journal knows. Nothing of the life before is given a chance to end well.
func (x *life) second() {
	x.t.Helper()
	_ = x.Journal.Close()
	x.Journal = x.open()
	cfg := *x.Config
	var err error
	if x.Suspects, err = New(&cfg); err != nil {
		x.t.Fatal(err)
	}
	seed := x.Journal.Seed()
	x.Suspects.Resume(seed.Suspects)
	x.Loop, err = loop.New(loop.Options{
		Control: control.Config{Cycle: int64(EmulatedCycle), Timeout: int64(EmulatedCycle / 3), Grace: int64(cfg.Interval), SwitchCost: 1},
		Network: &control.Network{Name: "again", Probes: cfg.Probes, Agents: x.Names}, Probing: cfg.Sent, Agents: x.Agents,
		Journal: x.Journal, Seed: seed, Suspects: x.Suspects, Rounds: x.Suspects.Rounds, Now: x.clock,
	})
	if err != nil {
		x.t.Fatal(err)
	}
	x.Agents.Post(x.Loop.Post, x.Names)
}

// reload gives the control a network, as a hangup does.
func (x *life) reload(c *Config) {
	x.t.Helper()
	next, err := New(c)
	if err != nil {
		x.t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		done <- x.Loop.Replace(context.Background(), loop.Replacement{
			Network: &control.Network{Name: "reloaded", Probes: c.Probes, Agents: x.Names}, Probing: c.Sent, First: func() { x.Suspects.replace(next) }})
	}()
	for {
		x.Loop.Step(x.clock())
		select {
		case err := <-done:
			if err != nil {
				x.t.Fatal(err)
			}
			x.Config = c
			return
		default:
		}
	}
}

// run lets time pass, and calls each once a cycle.
func (x *life) run(until time.Duration, each func()) {
	for ; x.now < until; x.now += lifeStep {
		x.Loop.Step(x.clock())
		x.deliver()
		x.Network.Run(x.now, func(emu.Datagram) {})
		if x.now%EmulatedCycle == EmulatedCycle/2 {
			each()
		}
	}
}

// deliver is that of Emulated, with a survey that may go wrong.
func (x *life) deliver() {
	x.Agents.Deliver(x.Network, 10*EmulatedCycle)
	if x.now < x.asked+loop.Settle {
		return
	}
	x.asked = x.now
	reported := x.Agents.Answers(x.Network, x.Names)
	if x.wrong != nil {
		reported = x.wrong(reported)
		x.wrong = nil
	}
	x.Suspects.Rounds.Survey(reported)
}

// fewer is the network without the detail of how its probes were planned: those of another seed.
func (x *life) other(seed uint64) *Config {
	x.t.Helper()
	plan, cover, err := scenario.CoverPlan(x.Network, 1, x.Config.Sent.Dialect, x.Config.Interval, 8, seed)
	if err != nil {
		x.t.Fatal(err)
	}
	c := *x.Config
	sent := *c.Sent
	c.Probes, sent.Addresses = slices.Clone(cover.Probes), loop.Addresses(plan)
	for k := range c.Probes {
		c.Probes[k].ID = fmt.Sprintf("%d/%s", seed, c.Probes[k].ID)
	}
	c.Links = NewLinks(x.Network.Graph(), nodeIDs(x.Network))
	if c.Passed, err = c.Links.Route(c.Probes); err != nil {
		x.t.Fatal(err)
	}
	c.Sent = &sent
	return &c
}

// TestAbsenceIsData kills a line, and then does everything that an operator, an attacker or chance may do. The line is
// suspected in every cycle from then on until it is mended, and at most 40 s longer. No healthy direction is suspected
// for longer than three cycles beyond those that the same probes cross.
func TestAbsenceIsData(t *testing.T) {
	const dead = "agg-0-0:3--core-0:1"
	for seed := range uint64(testkit.Rounds(6, 50)) {
		r := rand.New(rand.NewPCG(seed, 1))
		const begins, mended, most = 20 * time.Second, 140 * time.Second, 40 * time.Second
		x := newLife(t, seed+1, []emu.Fault{{Kind: emu.LosePackets, At: begins, For: mended - begins, Node: "agg-0-0", Peer: "core-0", Value: 1}})
		acts := []struct {
			name string
			do   func()
		}{
			{"a reload without a change", func() { c := *x.Config; x.reload(&c) }},
			{"another plan", func() { x.reload(x.other(seed + 100)) }},
			{"a restart", x.second},
			{"a kill in the middle of a change-over", func() {
				c := *x.Config
				x.reload(&c)
				x.Loop.Step(x.clock() + int64(EmulatedCycle))
				x.second()
			}},
			{"a kill of an agent", func() {
				n := x.Names[r.IntN(len(x.Names))]
				x.Network.StopAgent(n)
				x.Loop.Post(control.Down{Device: control.Device{Kind: control.Agent, Name: n}, Why: "killed"})
				x.Network.StartAgent(n)
				x.Loop.Post(control.Up{Device: control.Device{Kind: control.Agent, Name: n}})
			}},
			{"a flipped bit of the journal", func() {
				_ = x.Journal.Close()
				b, err := os.ReadFile(x.path)
				if err != nil {
					t.Fatal(err)
				}
				at := r.IntN(8 * len(b) / 2) // of what is not the newest
				b[at/8] ^= 1 << (at % 8)
				if err := os.WriteFile(x.path, b, 0o600); err != nil {
					t.Fatal(err)
				}
				x.second()
			}},
			{"an answer that is forged", func() {
				x.wrong = func(list []loop.Answer) []loop.Answer {
					k := r.IntN(len(list))
					for i := range list[k].Rounds.Received {
						list[k].Rounds.Received[i].Epoch ^= 1 << r.IntN(32)
					}
					return list
				}
			}},
			{"an answer that cannot be", func() {
				x.wrong = func(list []loop.Answer) []loop.Answer {
					list[r.IntN(len(list))].Wrong = errors.New("forged")
					return list
				}
			}},
			{"an agent with the address of another", func() {
				x.wrong = func(list []loop.Answer) []loop.Answer {
					list[0].Rounds.Address = list[1].Rounds.Address
					return list
				}
			}},
			{"a full table", func() {
				x.wrong = func(list []loop.Answer) []loop.Answer {
					for k := range list {
						list[k].Rounds.Unfollowed += 4200
					}
					return list
				}
			}},
			{"an agent that does not answer", func() {
				x.wrong = func(list []loop.Answer) []loop.Answer { return slices.Delete(list, 0, 1) }
			}},
		}
		r.Shuffle(len(acts), func(i, j int) { acts[i], acts[j] = acts[j], acts[i] })
		last := "the line went down"
		wrongFor := map[string]int{} // cycles in a row
		suspected := func() (is bool) {
			now := map[string]int{}
			for _, s := range x.Loop.Controller().Status().Suspects {
				if s.Link == dead {
					is = true
				} else if i, _ := x.Links.Lookup(dead); !slices.ContainsFunc(x.Suspects.alike(int32(i)), func(l int32) bool { return x.Links.Name(int(l)) == s.Link }) {
					now[s.Link] = wrongFor[s.Link] + 1
					if now[s.Link] == 4 {
						t.Errorf("seed %d: after %s, at %v, %s is suspected for longer than three cycles: %s", seed, last, x.now, s.Link, s.Why)
					}
				}
			}
			wrongFor = now
			return is
		}
		x.run(begins+15*time.Second, func() { suspected() })
		if !suspected() {
			t.Errorf("seed %d: %v after it went down the line is not suspected", seed, x.now-begins)
		}
		every := (mended - x.now) / time.Duration(len(acts)+1)
		for _, a := range acts {
			last = a.name
			a.do()
			missing := 0
			x.run(x.now+every, func() {
				if !suspected() {
					missing++
				}
			})
			if missing > 0 {
				t.Errorf("seed %d: after %s the line is not suspected in %d cycles", seed, a.name, missing)
			}
		}
		last = "the line was mended"
		x.run(mended+most, func() { suspected() })
		if suspected() {
			t.Errorf("seed %d: %v after it was mended the line is suspected still", seed, most)
		}
	}
}
