package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/hopscope/hopscope/internal/testkit"
	"github.com/hopscope/hopscope/p4/agent/agentpb"
	"github.com/hopscope/hopscope/p4/loop"
	"github.com/hopscope/hopscope/p4/probe"
	"github.com/hopscope/hopscope/planner/control"
	"github.com/hopscope/hopscope/planner/cover"
)

// TestControlStorm reloads a control fifty times in about a second, again and again, with other networks and with files
// that do not fit. Meanwhile findings and measurements of probes change, agents hang up while plans are on their way,
// and switches go. Each life is killed in the middle of it. An agent never gets a lower epoch than it has, nor another
// plan of the same epoch. A plan that all agents have covers every link. At the end switches hold what they should, and
// no orphan.
func TestControlStorm(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	r := rand.New(rand.NewPCG(14, 7))
	var mu sync.Mutex
	queue := false
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		switch now := time.Now().UnixMilli(); {
		case q.URL.Path == "/api/probes":
			fmt.Fprintf(w, `{"windows": [{"start_ms": %d, "end_ms": %d, "flow_bound": 0, "probes": []}]}`, now-1000, now)
		case queue:
			fmt.Fprint(w, `{"open": [{"id": "00000000000000a1", "kind": "high-queue", "severity": "critical", "node": "1", "egress_if": "1", "start_ms": 1, "end_ms": 0, "text": "a queue", "element": {"kind": "interface", "node": 1, "egress_if": 1}}], "ended": []}`)
		default:
			fmt.Fprint(w, `{"open": [], "ended": []}`)
		}
	}))
	defer page.Close()
	dir, config, listen, admin := controlSettings(t, page.URL)
	certificates(t, dir, "controller", "leaf-1", "leaf-2", "leaf-3", "spine-1", "spine-2")
	at := func(name string) string { return filepath.Join(dir, name) }
	small, probes := string(mustRead(t, at("lab.yaml"))), string(mustRead(t, at("probes.json")))
	large := strings.NewReplacer("  - spine-1\n", "  - {name: leaf-3, host_ports: [9]}\n  - spine-1\n", ", [leaf-2, spine-2]]", ", [leaf-2, spine-2], [leaf-3, spine-1], [leaf-3, spine-2]]").Replace(small)
	if err := os.WriteFile(at("large.yaml"), []byte(large), 0o600); err != nil {
		t.Fatal(err)
	}
	plan, err := program("plan", "cover", "--sr=int-probe", "--depots", "leaf-1,leaf-2,leaf-3", "--max-hops", "2", "--topology", at("large.yaml"), "--replan", at("probes.json"), "--format", "json").Output()
	if err != nil {
		t.Fatal(err)
	}
	links := map[string][]string{} // by id and way of a probe
	stay := map[string]bool{}      // those of the smaller network
	for n, b := range [][]byte{[]byte(probes), plan} {
		var c cover.Plan
		if err := json.Unmarshal(b, &c); err != nil {
			t.Fatal(err)
		}
		for k := range c.Probes {
			q, err := probe.New(&c.Probes[k], probe.Slot{Interval: time.Second})
			if err != nil {
				t.Fatal(err)
			}
			links[fmt.Sprint(q.ID, q.Route)] = c.Probes[k].Links
			for _, link := range c.Probes[k].Links {
				stay[link] = stay[link] || n == 0
			}
		}
	}
	switches := []*p4Switch{newP4Switch(t, dir, "spine-1"), newP4Switch(t, dir, "spine-2")}
	text := strings.NewReplacer("cycle: 1s, timeout: 900ms", "cycle: 150ms, timeout: 100ms, max_changes: 1").Replace(string(mustRead(t, config)))
	before, _, _ := strings.Cut(text, "switches: ")
	_, after, _ := strings.Cut(text, "admin: ")
	put := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(at(name), []byte(text), 0o600); err != nil { // not whole at once, as editors do it
			t.Fatal(err)
		}
	}
	become := func(topology, probes string, list ...*p4Switch) {
		t.Helper()
		var s []string
		for _, x := range list {
			s = append(s, x.setting(at("entries.json")))
		}
		put("lab.yaml", topology)
		put("probes.json", probes)
		put("control.yaml", fmt.Sprintf("%sswitches: [%s]\np4runtime: {ca_file: %s, cert_file: %s, key_file: %s}\nlog: {level: error}\nadmin: %s", before, strings.Join(s, ", "), at("ca.pem"), at("controller.pem"), at("controller.key"), after))
	}

	// Agents keep their plans, and hang up now and then.
	type taken struct {
		agent string
		plan  *agentpb.Plan
	}
	var all []taken
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	hang := map[string]context.CancelFunc{}
	for _, name := range []string{"leaf-1", "leaf-2", "leaf-3"} {
		p := &pretender{keeps: true, took: func(m *agentpb.Plan) {
			mu.Lock()
			defer mu.Unlock()
			all = append(all, taken{name, m})
		}}
		go func() {
			for ctx.Err() == nil {
				one, end := context.WithCancel(ctx)
				mu.Lock()
				hang[name] = end
				mu.Unlock()
				_ = p.follow(one, dir, listen, name)
				end()
				time.Sleep(10 * time.Millisecond)
			}
		}()
	}
	l := &controlLife{t: t, config: config, admin: admin, log: &heardLog{}}
	become(small, probes, switches...)
	for life := range 4 {
		l.start()
		l.until("steady", func(s *loop.Status, _ int) bool { return isSteady(s) })
		for range 50 {
			switch k := r.IntN(10); {
			case k < 3:
				become(small, probes, switches...)
			case k < 5:
				become(large, string(plan), switches[1])
			case k < 7:
				become(large, string(plan), switches...)
			case k == 7:
				become(small, "{", switches[0])
			default:
				become(small, string(plan), switches...) // probes of another network
			}
			l.hangup()
			mu.Lock()
			queue = r.IntN(2) == 0
			if r.IntN(4) == 0 {
				names := slices.Sorted(maps.Keys(hang))
				hang[names[r.IntN(len(names))]]()
			}
			mu.Unlock()
			if r.IntN(10) == 0 {
				switches[r.IntN(2)].Drop()
			}
			time.Sleep(time.Duration(r.IntN(40)) * time.Millisecond)
		}
		if life < 3 {
			become(small, probes, switches...) // for the next start, which would end with a file that does not fit
			_ = l.end(os.Kill)
		}
	}
	for _, s := range switches {
		s.strange(t, 6)
	}
	become(large, string(plan), switches...)
	mu.Lock()
	queue = true
	mu.Unlock()
	l.hangup()
	want := fmt.Sprint(map[uint64]string{5: "hopscope", 6: "somebody"})
	l.until("it is over", func(s *loop.Status, status int) bool {
		return status == 0 && isSteady(s) && len(s.Devices) == 5 && s.Behind == 0 && s.Detailed > 0 &&
			!slices.ContainsFunc(switches, func(x *p4Switch) bool { return fmt.Sprint(x.owners()) != want })
	})
	if err := l.end(os.Interrupt); err != nil {
		t.Errorf("control ends with %v\n%s", err, l.log)
	}

	mu.Lock()
	defer mu.Unlock()
	last := map[string]*agentpb.Plan{}
	epochs, whole := map[uint32]bool{}, 0
	for _, x := range all {
		old := last[x.agent]
		if old.GetEpoch() > x.plan.GetEpoch() || old != nil && old.GetEpoch() == x.plan.GetEpoch() && !proto.Equal(old, x.plan) {
			t.Errorf("%s has epoch %d and is given epoch %d:\n%v\n%v", x.agent, old.GetEpoch(), x.plan.GetEpoch(), old, x.plan)
		}
		last[x.agent] = x.plan
		epochs[x.plan.GetEpoch()] = true
		covered := map[string]bool{}
		for _, name := range []string{"leaf-1", "leaf-2"} { // leaf-3 is not always one of them
			if last[name].GetEpoch() != x.plan.GetEpoch() {
				covered = nil
				break
			}
		}
		if covered == nil || last["leaf-3"] != nil && last["leaf-3"].GetEpoch() > x.plan.GetEpoch() {
			continue
		}
		whole++
		for _, p := range last {
			for _, q := range p.GetProbes() {
				for _, link := range links[fmt.Sprint(q.GetId(), q.GetRoute())] {
					covered[link] = true
				}
			}
		}
		for link, stays := range stay {
			if stays && !covered[link] {
				t.Errorf("the plan of epoch %d, which all agents have, does not cover %s", x.plan.GetEpoch(), link)
			}
		}
	}
	if len(epochs) < 10 || whole < 5 {
		t.Errorf("%d epochs, of which %d were seen at all agents: this was no storm", len(epochs), whole)
	}
	// The journal numbers no two plans alike.
	planned := map[uint32]bool{}
	for line := range bytes.Lines(mustRead(t, at("journal"))) {
		var x control.Record
		if err := json.Unmarshal(line, &x); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		if x.What == control.Planned {
			if planned[x.Epoch] {
				t.Errorf("two plans have epoch %d", x.Epoch)
			}
			planned[x.Epoch] = true
		}
	}
	for e := range epochs {
		if !planned[e] {
			t.Errorf("epoch %d was given to an agent, and the journal does not know it", e)
		}
	}
	t.Logf("%d plans, %d given to agents, %d of them at all", len(planned), len(all), whole)
}
