package control

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/planner"
)

var update = flag.Bool("update", false, "write what scripts print into testdata")

// TestScripts plays testdata/*.txt: a line is an event or a question, and the indented lines behind it are what the controller wants
// done, what it journals and what it answers. The comments of a script say what has to be seen there. -update writes the indented
// lines anew, which are to be read before they are kept.
func TestScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) < 5 {
		t.Fatal(files, err)
	}
	for _, name := range files {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			var out []string
			s := new(script)
			want := strings.Split(string(text), "\n")
			for n, line := range want {
				if strings.HasPrefix(line, "  ") {
					continue
				}
				if out = append(out, line); line == "" || line[0] == '#' {
					continue
				}
				if err := s.play(line); err != nil {
					t.Errorf("%s:%d: %s: %v", name, n+1, line, err)
				}
				out, s.said = append(out, s.said...), nil
			}
			if *update {
				if err := os.WriteFile(name, []byte(strings.Join(out, "\n")), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			for k := range max(len(out), len(want)) {
				if k >= len(out) || k >= len(want) || out[k] != want[k] {
					t.Fatalf("%s:%d:\n%s\nwant\n%s", name, k+1, strings.Join(out[k:min(k+4, len(out))], "\n"), strings.Join(want[k:min(k+4, len(want))], "\n"))
				}
			}
		})
	}
}

// scriptNetworks are what scripts begin with and change to.
var scriptNetworks = map[string]*Network{
	"triangle": triangle(),
	"pair":     ring(4, 1), // two agents and four switches, with a link on each of four probes
	"long":     long(),
	"empty":    {Name: "empty", Agents: []string{"a"}},
	"smaller": {
		Name: "smaller", Agents: []string{"a"}, Switches: []string{"s00", "s01"}, Entries: planEntries,
		Probes: []planner.Probe{{ID: "p00", Agent: "a", Nodes: []string{"s00", "s01"}, Links: []string{"l00"}}},
	},
	"turned":  turned(),
	"moved":   moved(),
	"detour":  detour(),
	"handed":  handed(),
	"nowhere": {Name: "nowhere", Agents: []string{"a"}, Probes: []planner.Probe{{ID: "p", Agent: "a"}}},
	"odd": {
		Name: "odd", Agents: []string{"a"}, Switches: []string{"a"},
		Probes: []planner.Probe{{ID: "p1", Agent: "a", Links: []string{"ab"}}, {ID: "p2", Agent: "a", Links: []string{"bc"}}},
		Entries: func(p *Plan, _ string) []Entry {
			return []Entry{{p.Epoch, "z", "first"}, {0, "a", "ever"}, {p.Epoch, "z", "second"}}
		},
		Check: func(p *Plan) error {
			if p.IsDetailed("p2") {
				return fmt.Errorf("p2 is beyond the limits")
			}
			return nil
		},
	},
	"nameless": {Agents: []string{""}},
}

// long is a ring of six links, where a probe passes up to three, and nothing is installed.
func long() *Network {
	n := ring(6, 3)
	n.Name, n.Switches, n.Entries = "long", nil, nil
	return n
}

// turned is the pair with other ids of probes.
func turned() *Network {
	n := ring(4, 1)
	n.Name = "turned"
	for k := range n.Probes {
		n.Probes[k].ID = fmt.Sprintf("q%02d", k)
	}
	return n
}

// moved is the pair with a probe that passes another link, one that is gone, and one that is new.
func moved() *Network {
	n := ring(4, 1)
	n.Name = "moved"
	n.Probes[1].Links, n.Probes[3].ID = []string{"l07", "l01"}, "p09"
	n.Probes[3].Links = []string{"l03", "l08"}
	return n
}

// detour is the pair with two probes that pass another link first, in the other order, and without a switch.
func detour() *Network {
	n := ring(4, 1)
	n.Name = "detour"
	n.Probes[0].Links, n.Probes[1].Links = []string{"l05", "l00"}, []string{"l06", "l01"}
	slices.Reverse(n.Probes)
	n.Switches = n.Switches[:3]
	return n
}

// handed is the pair with a new probe for a link whose own probe passes another one.
func handed() *Network {
	n := ring(4, 1)
	n.Name = "handed"
	n.Probes = append(n.Probes, planner.Probe{ID: "p09", Agent: "a", Links: n.Probes[1].Links})
	n.Probes[1].Links = []string{"l07"}
	return n
}

// script is a world that a script moves.
type script struct {
	w              *world
	said           []string
	phase          Phase
	next           string
	quiet, journal bool
}

func (s *script) say(format string, args ...any) {
	if s.quiet {
		return
	}
	s.said = append(s.said, "  "+fmt.Sprintf(format, args...))
}

// play does what a line says.
func (s *script) play(line string) error {
	f := strings.Fields(line)
	verb, f := f[0], f[1:]
	if len(f) > 0 && f[len(f)-1] == "..." { // what is done is not shown
		f, s.quiet = f[:len(f)-1], true
		defer func() { s.quiet = false }()
	}
	if s.w == nil && verb != "new" {
		return fmt.Errorf("a script begins with new")
	}
	rest := func(n int) string { return strings.Join(f[min(n, len(f)):], " ") }
	var d Device
	var n *node
	number := func(n int) int64 {
		if f[n] == "." { // the request that is waited for
			return int64(s.w.c.find(d).request)
		}
		x, err := strconv.ParseInt(f[n], 0, 64)
		if err != nil {
			panic(err)
		}
		return x
	}
	if len(f) >= 2 && d.Kind.UnmarshalText([]byte(f[0])) == nil {
		d.Name = f[1]
		if n = s.w.node(d); n == nil {
			n = &node{Device: d, does: "", connected: true}
			n.call()
			if s.w.c.find(d) != nil {
				s.w.nodes = append(s.w.nodes, *n)
				n = s.w.node(d)
			}
		}
	}
	one := func(how single, refuse bool) {
		s.w.single = how
		s.w.carryOut(n, refuse)
		s.w.single = single{}
		s.w.answer(n)
	}
	switch verb {
	case "do", "refuse", "refuse-one", "forget", "drop", "did":
		if len(n.requests) == 0 {
			return fmt.Errorf("nothing is asked of %s", d)
		}
	}
	switch verb {
	case "new":
		return s.begin(f)
	case "up":
		n.requests = nil // what was on its way over the last connection is lost
		s.w.connect(n)
	case "down":
		s.w.disconnect(n, rest(2))
	case "do":
		one(single{}, false)
	case "refuse":
		one(single{}, true)
	case "refuse-one":
		one(single{refusesOne, int(number(2))}, false)
	case "forget":
		one(single{forgets, -1}, false)
	case "drop":
		n.requests = n.requests[1:]
	case "hold-entries":
		n.entries = parseEntries(rest(2))
	case "has-epoch":
		n.plan = nil
		if e := number(2); e > 0 {
			n.plan = &Plan{Epoch: uint32(e), Network: s.w.net, Probes: s.w.net.Probes}
		}
	case "start":
		s.quiet = true
		for k := range s.w.nodes {
			s.w.connect(&s.w.nodes[k])
		}
		s.all()
		s.quiet = false
	case "all":
		s.all()
	case "settle":
		for s.all(); ; s.all() {
			at, ok := s.w.c.Next()
			if !ok || at >= s.w.lastTick+cycle {
				break
			}
			s.w.emit(Wake{at})
		}
	case "tick":
		s.w.ticked, s.w.bad = 2, nil
		for _, x := range f {
			link, weight, _ := strings.Cut(x, "=")
			weight, since, _ := strings.Cut(weight, "@")
			suspect := Suspect{Link: link}
			suspect.Weight, _ = strconv.ParseFloat(weight, 64)
			suspect.Since, _ = strconv.ParseInt(since, 10, 64)
			s.w.bad = append(s.w.bad, suspect)
		}
		s.w.tick(false)
	case "wake":
		s.w.emit(Wake{number(0)})
	case "acked":
		s.w.emit(Acked{Request(number(2)), d})
	case "refused":
		s.w.emit(Refused{Request: Request(number(2)), Device: d, Why: rest(3)})
	case "did":
		n.requests = n.requests[1:]
		s.w.emit(Refused{Request: Request(number(2)), Device: d, Why: "not all", Did: parseChanges(f[3:])})
	case "read":
		s.w.emit(ReadBack{Request: Request(number(2)), Device: d, Epoch: uint32(number(3)), Entries: parseEntries(rest(4))})
	case "program", "may-load":
		s.w.emit(Program{Device: d, Why: rest(2), Load: verb == "may-load"})
	case "held":
		e := Held{}
		for _, x := range f {
			kind, name, device := strings.Cut(x, "/")
			if !device {
				e.Why = x
				continue
			}
			at := Device{Name: name}
			if err := at.Kind.UnmarshalText([]byte(kind)); err != nil {
				return err
			}
			e.Unsent = append(e.Unsent, s.w.c.find(at).request)
		}
		s.w.emit(e)
	case "superseded":
		s.w.emit(Superseded{rest(0)})
	case "network":
		net := scriptNetworks[f[0]]
		if net != nil {
			s.w.net = net
			s.w.link(net)
		}
		s.w.emit(NetworkChanged{net, f[1:]})
	case "accept":
		agent := f[0]
		if agent == "any" {
			agent = ""
		}
		for k := range f[1:] {
			s.say("%d %s", number(k+1), s.w.c.Accept(agent, uint32(number(k+1))))
		}
	case "changing":
		links, from, to := s.w.c.Changing(number(0))
		s.say("%v from %d to %d", links, from, to)
	case "status":
		s.status()
	case "stats":
		x := s.w.c.Status()
		s.say("%+v of %d suspects", x.Stats, len(x.Suspects))
	case "counts":
		s.say("%+v", s.w.c.Status().Counts)
	case "journal":
		s.journal = true
	case "state":
		if x := s.w.c.find(d); x == nil {
			s.say("no such device")
		} else {
			s.device(s.w.c.deviceStatus(x))
		}
	default:
		e := Command{Verb: Verb(verb), Author: "ann"}
		if len(f) > 0 {
			e.Epoch = uint32(number(0))
		}
		s.w.emit(e)
	}
	s.after()
	return nil
}

// all has the devices that are connected do all that they are asked, and answer.
func (s *script) all() {
	for busy := true; busy; {
		busy = false
		for k := range s.w.nodes {
			n := &s.w.nodes[k]
			for n.connected && len(n.requests)+len(n.answers) > 0 {
				if busy = true; len(n.answers) > 0 {
					s.w.answer(n)
				} else {
					s.w.carryOut(n, false)
				}
			}
		}
	}
}

// begin makes a controller by settings such as attempts=2.
func (s *script) begin(f []string) error {
	cfg, seed := Config{Cycle: cycle, Timeout: timeout, Grace: grace}, Seed{}
	for _, x := range f[1:] {
		key, text, _ := strings.Cut(x, "=")
		value, err := strconv.ParseFloat(text, 64)
		if err != nil && key != "detailed" {
			return err
		}
		switch key {
		case "cycle":
			cfg.Cycle = int64(value)
		case "attempts":
			cfg.Attempts = int(value)
		case "audit":
			cfg.Audit = int(value)
		case "grace":
			cfg.Grace = int64(value)
		case "retry":
			cfg.RetryAfter = int(value)
		case "most":
			cfg.MaxChanges = int(value)
		case "budget":
			cfg.Budget = value
		case "cost":
			cfg.SwitchCost = value
		case "approve":
			cfg.Approve = value != 0
		case "dry":
			cfg.DryRun = value != 0
		case "basic":
			cfg.BasicBytes = int(value)
		case "seed":
			seed.Epoch = uint32(value)
		case "detailed":
			seed.Detailed = strings.Split(text, ",")
		default:
			return fmt.Errorf("no setting %q", key)
		}
	}
	s.journal = false
	s.w = newWorld(cfg, scriptNetworks[f[0]])
	s.w.start(seed)
	s.w.alike = true
	s.phase, s.next = "", ""
	s.w.twist = &twist{actions: func(_ *world, actions []Action) []Action {
		for _, a := range actions {
			s.action(a)
		}
		return actions
	}}
	s.after()
	return nil
}

// after says what has changed of what can be asked.
func (s *script) after() {
	next := "no wake"
	if at, ok := s.w.c.Next(); ok {
		next = fmt.Sprintf("wake at %d", at)
	}
	if p := s.w.c.Phase(); p != s.phase || next != s.next {
		s.phase, s.next = p, next
		s.say("%s, %s", p, next)
	}
}

func (s *script) action(a Action) {
	switch a := a.(type) {
	case SendPlan:
		s.say("plan %d to %s: %s", a.Request, a.Device, describe(a.Plan))
	case Install:
		s.say("install %d into %s: %s", a.Request, a.Device, changesText(changes("", a.Entries)))
	case Remove:
		s.say("remove %d from %s: %s", a.Request, a.Device, changesText(changes("", a.Entries)))
	case Load:
		s.say("load %d %s", a.Request, a.Device)
	case Read:
		s.say("read %d %s", a.Request, a.Device)
	case Journal:
		r := a.Record
		if brief := r.What == Asked || r.What == Answered || r.What == Pushed || r.What == WentUp; brief && !s.journal {
			return
		}
		b := fmt.Sprintf("%d %s", r.Time, r.What)
		for _, x := range []struct {
			name string
			text string
		}{{"", r.Device}, {"request", zeroless(r.Request)}, {"epoch", zeroless(r.Epoch)}, {"count", zeroless(r.Count)}, {"on", strings.Join(r.On, " ")},
			{"off", strings.Join(r.Off, " ")}, {"left", strings.Join(r.Left, " ")}, {"why", r.Why}, {"entries", changesText(r.Entries)}} {
			if x.text != "" {
				b += strings.TrimRight(", "+x.name, " ") + " " + x.text
			}
		}
		if r.Found != nil {
			b += fmt.Sprintf(", found %d", *r.Found)
		}
		s.say("| %s", strings.ReplaceAll(b, ",  ", ", "))
	}
}

func zeroless[T Request | uint32 | int](x T) string {
	if x == 0 {
		return ""
	}
	return fmt.Sprint(x)
}

func describe(p *Plan) string {
	if p == nil {
		return "none"
	}
	probes := ""
	for k := range p.Probes {
		if probes += " " + p.Probes[k].ID; p.IsDetailed(p.Probes[k].ID) {
			probes += "+"
		}
	}
	return fmt.Sprintf("epoch %d of %s,%s", p.Epoch, p.Network.Name, probes)
}

// changesText writes changes such as "insert 1/key=value (why)".
func changesText(list []Change) string {
	var out []string
	for _, x := range list {
		b := strings.TrimSpace(fmt.Sprintf("%s %d/%s=%s", x.Op, x.Epoch, x.Key, strings.ReplaceAll(x.Value, " ", "_")))
		if x.Why != "" {
			b += " (" + x.Why + ")"
		}
		out = append(out, b)
	}
	return strings.Join(out, "; ")
}

// parseEntries reads entries such as "1/key=value 0/key=value".
func parseEntries(text string) (list []Entry) {
	for _, x := range strings.Fields(text) {
		var e Entry
		epoch, key, _ := strings.Cut(x, "/")
		n, _ := strconv.ParseUint(epoch, 10, 32)
		e.Epoch = uint32(n)
		e.Key, e.Value, _ = strings.Cut(key, "=")
		e.Value = strings.ReplaceAll(e.Value, "_", " ")
		list = append(list, e)
	}
	return list
}

// parseChanges reads changes such as "insert:1/key=value:why". One for the reason ~ was not tried.
func parseChanges(list []string) (out []Change) {
	for _, x := range list {
		f := append(strings.SplitN(x, ":", 3), "")
		c := Change{Op: Op(f[0]), Entry: parseEntries(f[1])[0], Why: f[2], Skipped: f[2] == "~"}
		out = append(out, c)
	}
	return out
}

func (s *script) status() {
	var known []uint32
	for _, p := range s.w.c.known {
		known = append(known, p.Epoch)
	}
	slices.Sort(known)
	x := s.w.c.Status()
	s.say("%s, %q, epoch %d, in force %d at %d of %d, before %d, behind %d, network %s, kept %v", x.Phase, x.Why, x.Epoch, x.InForce, x.Have, x.Agents, x.Before, x.Behind, x.Network, known)
	if x.Pending != nil || x.Would != nil || x.Paused || x.DryRun {
		s.say("pending %s; would be %s; paused %v, dry %v", describe(x.Pending), describe(x.Would), x.Paused, x.DryRun)
	}
	for _, d := range x.Devices {
		if d.State == "ready" && d.Waits == "" {
			continue
		}
		s.device(d)
	}
}

func (s *script) device(d DeviceStatus) {
	b := fmt.Sprintf("%s is %s", d.Device, d.State)
	if d.Epoch > 0 {
		b += fmt.Sprintf(", epoch %d", d.Epoch)
	}
	if d.Entries > 0 {
		b += fmt.Sprintf(", %d entries", d.Entries)
	}
	if d.Waits != "" {
		b += ", waits for " + d.Waits
	}
	if d.Why != "" {
		b += ": " + d.Why
	}
	s.say("%s", b)
}
