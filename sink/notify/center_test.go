package notify

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/names"
)

const second = int64(time.Second)

var epoch = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC).UnixNano()

func testConfig() Config {
	var c Config
	c.SetDefaults()
	c.Heartbeat = 0
	return c
}

func newCenter(t testing.TB, change func(*Config)) *Center {
	t.Helper()
	cfg := testConfig()
	if change != nil {
		change(&cfg)
	}
	c, err := New(cfg, "here")
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func slow(id uint64, node uint32) inference.Finding {
	return inference.Finding{ID: id, Kind: inference.HighLatency, Severity: inference.Warning, Start: epoch, Updated: epoch, Node: node,
		Element: inference.ElementOfNode(node), Text: "slow"}
}

// reported returns the sent alerts in a few words.
func reported(alerts []Alert) (out []string) {
	for _, a := range alerts {
		out = append(out, strings.TrimSpace(a.Status.String()+" "+a.Key))
	}
	return out
}

func expect(t *testing.T, got []Alert, want ...string) {
	t.Helper()
	if !slices.Equal(reported(got), want) {
		t.Errorf("reported %q, want %q", reported(got), want)
	}
}

func TestOneAlertForOneCause(t *testing.T) {
	c := newCenter(t, nil)
	first := slow(1, 7)
	expect(t, c.Step(epoch, []inference.Finding{first}), "firing high-latency node 7")

	// A second finding makes both evidence of a cause.
	cause := inference.Finding{ID: 9, Kind: inference.HighQueue, Severity: inference.Critical, Start: epoch, Element: inference.ElementOfLink(7, 8), Evidence: 2, Text: "link",
		SeenAt: inference.ElementOfNode(8), Value: 53800}
	second1 := slow(2, 8)
	first.Cause, second1.Cause = 9, 9
	c.UseNames(names.New([]names.Node{{ID: 8, Name: "leaf-5"}}, nil, nil))
	got := c.Step(epoch+second, []inference.Finding{first, second1, cause})
	expect(t, got, "resolved high-latency node 7", "firing high-queue link 7–8")
	if want := "explained by high-queue link 7–8; last: slow"; got[0].Text != want {
		t.Errorf("%q, want %q", got[0].Text, want)
	}
	if a := got[1]; a.Severity != "critical" || a.Evidence != 2 || a.Open != 1 || a.Element != "link 7–8" || a.Headline != "Fault on link node 7 – leaf-5: queue 53.8 kB at leaf-5, usually empty" {
		t.Errorf("%+v", a)
	}
	expect(t, c.Step(epoch+2*second, nil))
	cause.End = epoch + 3*second
	expect(t, c.Step(epoch+3*second, []inference.Finding{cause}), "resolved high-queue link 7–8")
	expect(t, c.Step(epoch+4*second, []inference.Finding{cause}))
}

// TestRunbook holds that alerts point at the section of their kind, and which addresses the settings refuse.
func TestRunbook(t *testing.T) {
	for base, want := range map[string]string{"": "/docs/findings#high-latency", "https://wiki.example/findings": "https://wiki.example/findings#high-latency"} {
		c := newCenter(t, func(cfg *Config) { cfg.Runbook = base })
		if got := c.Step(epoch, []inference.Finding{slow(1, 7)}); len(got) == 0 || got[0].Runbook != want {
			t.Errorf("%q: %+v, want %q", base, got, want)
		}
	}
	for _, base := range []string{"wiki", "/docs/findings", "ftp://wiki.example/", "https://wiki.example/findings#kinds", "https://"} {
		var cfg Config
		cfg.SetDefaults()
		cfg.Runbook = base
		if err := cfg.Validate(); err == nil || !strings.Contains(err.Error(), "runbook: ") {
			t.Errorf("%q: %v", base, err)
		}
	}
}

func TestWhatIsNotSent(t *testing.T) {
	c := newCenter(t, nil)
	info, learning, ended := slow(1, 1), slow(2, 2), slow(3, 3)
	info.Severity, learning.Learning, ended.End = inference.Info, true, epoch
	expect(t, c.Step(epoch, []inference.Finding{info, learning, ended}))
	info.Severity = inference.Warning // it rises
	learning.Learning = false
	expect(t, c.Step(epoch+second, []inference.Finding{info, learning}), "firing high-latency node 1", "firing high-latency node 2")
	info.Severity = inference.Critical
	expect(t, c.Step(epoch+2*second, []inference.Finding{info}), "firing high-latency node 1")
}

func TestRepeatsAndRefresh(t *testing.T) {
	c := newCenter(t, func(c *Config) { c.Repeat, c.Heartbeat = 3*time.Minute, 2*time.Minute })
	expect(t, c.Step(epoch, []inference.Finding{slow(1, 7)}), "firing high-latency node 7", "heartbeat")
	minute := 60 * second
	expect(t, c.Step(epoch+minute-1, nil))
	expect(t, c.Step(epoch+minute, nil), "open high-latency node 7")
	expect(t, c.Step(epoch+2*minute, nil), "open high-latency node 7", "heartbeat")
	expect(t, c.Step(epoch+3*minute, nil), "repeated high-latency node 7")
	if err := c.Follow(&Rules{Acknowledged: []Acknowledgement{{Alert: "high-latency node 7", At: time.Unix(0, epoch+3*minute)}}}); err != nil {
		t.Fatal(err)
	}
	for m := int64(4); m < 20; m++ {
		for _, a := range c.Step(epoch+m*minute, nil) {
			if a.Status != Open && a.Status != Heartbeat || a.Status == Open && !a.Acknowledged {
				t.Errorf("minute %d: %+v", m, a)
			}
		}
	}
	// What comes back later was not acknowledged.
	gone, again := slow(1, 7), slow(2, 7)
	gone.End, again.Start = epoch+20*minute, epoch+21*minute
	c.Step(epoch+20*minute, []inference.Finding{gone})
	c.Step(epoch+21*minute, []inference.Finding{again})
	if got := reported(c.Step(epoch+24*minute, nil)); !slices.Contains(got, "repeated high-latency node 7") {
		t.Errorf("reported %q", got)
	}
	// A clock that is set back does not stop repeats and heartbeats.
	expect(t, c.Step(epoch, nil), "repeated high-latency node 7", "heartbeat")
}

func TestMuteEnds(t *testing.T) {
	c := newCenter(t, func(c *Config) {
		c.Maintenance = []Mute{{Element: "node 7", From: "2026-11-22T12:00:00Z", Until: "2026-11-22T12:01:00Z", Every: 24 * time.Hour}}
	})
	f := slow(1, 7)
	f.Element = inference.Element{Kind: inference.InterfaceElement, Node: 7, EgressIf: 2}
	for s := int64(0); s < 60; s += 10 {
		expect(t, c.Step(epoch+s*second, []inference.Finding{f}))
	}
	expect(t, c.Step(epoch+60*second, nil), "firing high-latency interface 7:2")
	day := 24 * 3600 * second
	expect(t, c.Step(epoch+day, nil))
	expect(t, c.Step(epoch+day+60*second, nil), "firing high-latency interface 7:2")
	f.End = epoch + 2*day
	expect(t, c.Step(epoch+2*day, []inference.Finding{f}), "resolved high-latency interface 7:2") // of what was sent, also in the mute
}

func TestRestarted(t *testing.T) {
	c := newCenter(t, nil)
	c.Step(epoch, []inference.Finding{slow(1, 1), slow(2, 2), slow(3, 3)})
	next := newCenter(t, nil)
	if err := next.ReadState(c.AppendState(nil)); err != nil {
		t.Fatal(err)
	}
	next.Restarted()
	found := slow(1, 2) // the ids begin anew
	found.Learning = true
	expect(t, next.Step(epoch+30*second, []inference.Finding{found}))
	ended := slow(44, 3)
	ended.End = epoch + 40*second
	expect(t, next.Step(epoch+40*second, []inference.Finding{ended}), "resolved high-latency node 3")
	var all []string
	for m := int64(1); m < 60; m++ {
		for _, a := range next.Step(epoch+30*second+m*60*second, nil) {
			if a.Status != Open {
				all = append(all, fmt.Sprint(m, " ", a.Status, " ", a.Key))
			}
		}
	}
	if want := []string{"15 resolved high-latency node 1"}; !slices.Equal(all, want) {
		t.Errorf("reported %q, want %q", all, want)
	}
}

func TestBounded(t *testing.T) {
	c := newCenter(t, func(c *Config) { c.MaxOpen = 10 })
	var news []inference.Finding
	for i := range uint32(1000) {
		news = append(news, slow(uint64(i+1), i))
	}
	if got := c.Step(epoch, news); len(got) != 10 {
		t.Errorf("%d alerts", len(got))
	}
	for i := range uint64(1000) { // many findings of one alert
		c.Step(epoch, []inference.Finding{slow(5000+i, 1)})
	}
	if open, refused := c.Counts(); open != 10 || refused < 990 || len(c.holders) > idsAnAlert*10 {
		t.Errorf("%d open, %d refused, %d followed", open, refused, len(c.holders))
	}
	if c.cfg.Heartbeat = time.Minute; !strings.Contains(c.Step(epoch+second, nil)[0].Text, "were not sent, because max_open") {
		t.Error("nobody is reported what finds no place")
	}
}

// life is a model of findings that come and go, and of the alerts sent about them.
type life struct {
	t     *testing.T
	rng   *rand.Rand
	open  map[uint64]inference.Finding
	next  uint64
	fired map[string]bool
	quiet map[string]bool // muted at the last step
}

var someKinds = []inference.Kind{inference.HighLatency, inference.PacketDrops, inference.ExporterSilence}

// news changes a few findings.
func (l *life) news(now int64) (news []inference.Finding) {
	ids := make([]uint64, 0, len(l.open))
	for id := range l.open {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	for _, id := range ids {
		f := l.open[id]
		switch l.rng.IntN(8) {
		case 0:
			f.End = now
			delete(l.open, id)
			news = append(news, f)
			continue
		case 1:
			f.Severity = min(f.Severity+1, inference.Critical)
		case 2:
			f.Cause = ids[l.rng.IntN(len(ids))]
			if f.Cause == id {
				f.Cause = 0
			}
		case 3:
			f.Cause = 0
		default:
			continue
		}
		l.open[id] = f
		news = append(news, f)
	}
	for range l.rng.IntN(3) {
		l.next++
		f := slow(l.next, uint32(l.rng.IntN(4)+1))
		f.Kind, f.Start, f.Severity = someKinds[l.rng.IntN(3)], now, inference.Severity(l.rng.IntN(3))
		if l.rng.IntN(5) == 0 {
			f.Value = math.NaN()
		}
		l.open[f.ID] = f
		news = append(news, f)
	}
	return news
}

// check compares the sent alerts with the open findings.
func (l *life) check(now int64, out []Alert, rules *Rules) {
	muted := func(kind inference.Kind, e inference.Element) bool {
		return slices.ContainsFunc(rules.Mutes, func(m Mute) bool {
			c, err := m.compile()
			return err == nil && c.active(now) && c.covers(kind, e)
		})
	}
	want, hidden := map[string]bool{}, map[string]bool{}
	for _, f := range l.open {
		if f.Cause == 0 && f.Severity >= inference.Warning {
			want[Key(&f)] = true
		}
		if muted(f.Kind, f.Element) {
			hidden[Key(&f)] = true
		}
	}
	seen := map[string]bool{}
	for _, a := range out {
		if seen[a.Key] {
			l.t.Fatalf("%s is reported twice at once", a.Key)
		}
		seen[a.Key] = true
		switch a.Status {
		case Firing:
			l.fired[a.Key] = true
		case Resolved:
			if !l.fired[a.Key] {
				l.t.Fatalf("%s ends and was not reported, or has ended before", a.Key)
			}
			delete(l.fired, a.Key)
		default:
			if !l.fired[a.Key] {
				l.t.Fatalf("%s is %s and was not reported", a.Key, a.Status)
			}
			for _, x := range rules.Acknowledged {
				if x.Alert == a.Key && a.Status == Repeated && !x.At.Before(a.Start) {
					l.t.Fatalf("%s is repeated and acknowledged", a.Key)
				}
			}
		}
		if hidden[a.Key] && a.Status != Resolved {
			l.t.Fatalf("%s is muted and %s", a.Key, a.Status)
		}
		if l.quiet[a.Key] && a.Status != Firing && a.Status != Resolved {
			l.t.Fatalf("%s is not muted any more, and %s", a.Key, a.Status)
		}
	}
	for key := range want {
		if !l.fired[key] && !hidden[key] {
			l.t.Fatalf("%s is open and nobody knows", key)
		}
	}
	for key := range l.fired {
		if !want[key] {
			l.t.Fatalf("%s has ended and nobody knows", key)
		}
	}
	l.quiet = map[string]bool{}
	for key := range want {
		l.quiet[key] = hidden[key]
	}
}

// TestRandomLives follows random findings under random rules, through centers that are saved and restored at every step and
// runs that begin anew.
func TestRandomLives(t *testing.T) {
	for seed := range uint64(150) {
		rng := rand.New(rand.NewPCG(seed, 12))
		l := &life{t: t, rng: rng, open: map[uint64]inference.Finding{}, fired: map[string]bool{}, quiet: map[string]bool{}}
		steady := newCenter(t, func(c *Config) { c.Repeat = 2 * time.Minute })
		moved := steady
		rules := &Rules{}
		for i := range int64(120) {
			now := epoch + i*20*second
			if rng.IntN(6) == 0 {
				rules = &Rules{}
				for range rng.IntN(3) {
					m := Mute{From: utc(now - 50*second).Format(time.RFC3339), Until: utc(now + rng.Int64N(200)*second).Format(time.RFC3339)}
					if rng.IntN(2) == 0 {
						m.Element = fmt.Sprint("node ", rng.IntN(4)+1)
					}
					if m.Element == "" || rng.IntN(2) == 0 {
						m.Kind = someKinds[rng.IntN(3)].String()
					}
					rules.Mutes = append(rules.Mutes, m)
					rules.Acknowledged = append(rules.Acknowledged, Acknowledgement{Alert: "drops node 1", At: utc(now)})
				}
			}
			news := l.news(now)
			state := moved.AppendState(nil)
			moved = newCenter(t, func(c *Config) { c.Repeat = 2 * time.Minute })
			if err := moved.ReadState(state); err != nil {
				t.Fatalf("seed %d, step %d: %v\n%s", seed, i, err, state)
			}
			if rng.IntN(20) == 0 { // all findings are found again, by other numbers
				news = news[:0]
				again := map[uint64]inference.Finding{}
				for _, id := range slices.Sorted(func(yield func(uint64) bool) {
					for id := range l.open {
						if !yield(id) {
							return
						}
					}
				}) {
					f := l.open[id]
					l.next++
					f.ID, f.Cause = l.next, 0
					f.Severity = max(f.Severity, inference.Warning)
					again[f.ID] = f
					news = append(news, f)
				}
				for key := range l.fired { // and those which ended meanwhile are found, and end
					kind, element, _ := strings.Cut(key, " ")
					k, _ := inference.ParseKind(kind)
					e, _ := inference.ParseElement(element)
					news = append(news, inference.Finding{ID: l.next + 1, Kind: k, Element: e, Severity: inference.Warning, Start: now, End: now})
				}
				slices.SortStableFunc(news, func(a, b inference.Finding) int { return strings.Compare(Key(&a), Key(&b)) })
				l.open = again
				steady.Restarted()
				moved.Restarted()
			}
			for _, c := range []*Center{steady, moved} {
				if err := c.Follow(rules); err != nil {
					t.Fatal(err)
				}
			}
			out := steady.Step(now, news)
			if other := moved.Step(now, news); !reflect.DeepEqual(out, other) {
				t.Fatalf("seed %d, step %d: %v from the one that ran on, %v from the one that was restored", seed, i, reported(out), reported(other))
			}
			l.check(now, out, rules)
		}
	}
}

func TestStateOfOthers(t *testing.T) {
	c := newCenter(t, nil)
	c.Step(epoch, []inference.Finding{slow(1, 7)})
	good := c.AppendState(nil)
	for _, bad := range []string{
		"", "{}", "null", `{"Version":2}`, strings.Replace(string(good), `"Version":1`, `"Version":9`, 1),
		strings.Replace(string(good), "node 7", "node 8", 1), strings.Replace(string(good), `"IDs":[1]`, `"IDs":[1,1]`, 1), strings.Replace(string(good), `"IDs":[1]`, `"IDs":[]`, 1),
		strings.Replace(string(good), `"Open":[`, `"Open":[null,`, 1),
	} {
		other := newCenter(t, nil)
		if err := other.ReadState([]byte(bad)); err == nil || len(other.open) != 0 {
			t.Errorf("%s: is read", bad)
		}
	}
}

func FuzzReadState(f *testing.F) {
	c := newCenter(f, nil)
	c.Step(epoch, []inference.Finding{slow(1, 7), slow(2, 8)})
	f.Add(c.AppendState(nil))
	f.Add([]byte(`{"Version":1,"Open":[{"Alert":{"key":"drops","kind":"drops","status":"firing"},"Old":true}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		c := newCenter(t, nil)
		if c.ReadState(b) != nil {
			return
		}
		state := c.AppendState(nil)
		other := newCenter(t, nil)
		if err := other.ReadState(state); err != nil {
			t.Fatalf("its own state: %v\n%s", err, state)
		}
		if again := other.AppendState(nil); !bytes.Equal(state, again) {
			t.Fatalf("\n%s\n%s", state, again)
		}
		for i := range int64(3) {
			c.Step(epoch+i*100*second, []inference.Finding{slow(1, 7)})
		}
	})
}

func TestBatchAndBack(t *testing.T) {
	c := newCenter(t, func(c *Config) { c.Heartbeat = time.Minute })
	news := []inference.Finding{slow(1, 7), slow(2, 8)}
	news[0].Value, news[0].Text = math.Inf(1), "a \x00\xff\" text"
	out := c.Step(epoch, news)
	b := Batch(out)
	got, err := Alerts(b)
	if err != nil {
		t.Fatal(err)
	}
	want, _ := json.Marshal(out)
	if back, _ := json.Marshal(got); !bytes.Equal(back, want) {
		t.Errorf("\n%s\n%s", back, want)
	}
	if len(out) != 3 || b.Points[0].Time == b.Points[1].Time || b.Reports != 0 {
		t.Errorf("%+v", b)
	}
}
