package influx

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hopscope/hopscope/internal/servertest"
	"github.com/hopscope/hopscope/internal/testkit"
	"github.com/hopscope/hopscope/sink"
)

// writerTo makes a writer to a test server, with the token in a file as an operator has it.
func writerTo(t testing.TB, s *servertest.Influx, change func(*Config)) *writer {
	t.Helper()
	c := DefaultConfig()
	c.URL, c.Org, c.Bucket = s.URL, s.Org, s.Bucket
	if s.Token != "" {
		c.TokenFile = tokenFile(t, s.Token)
	}
	if change != nil {
		change(&c)
	}
	w, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	return w
}

func tokenFile(t testing.TB, token string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(path, []byte(token+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

const second = int64(time.Second)

// base is a time that lies in one shard with all that follows it in these tests.
const base = 1_600_000_000 * second

func simple(measurement, tag string, v int64, at int64) sink.Point {
	return sink.Point{Measurement: measurement, Tags: []sink.Tag{{Key: "t", Value: tag}}, Fields: []sink.Field{sink.IntField("v", v)}, Time: at}
}

func write(t *testing.T, w *writer, points ...sink.Point) {
	t.Helper()
	if err := w.Write(t.Context(), &sink.Batch{Points: points}); err != nil {
		t.Fatalf("Write = %v", err)
	}
}

// all is a query for everything of one measurement.
func all(measurement string) string {
	return fmt.Sprintf(`from(bucket: BUCKET) |> range(start: 0) |> filter(fn: (r) => r._measurement == %q)`, measurement)
}

func TestWriteAndQuery(t *testing.T) {
	t.Parallel()
	servertest.EachInflux(t, func(t *testing.T, s *servertest.Influx) {
		for _, gzip := range []bool{true, false} {
			w := writerTo(t, s, func(c *Config) { c.Gzip, c.BatchPoints = gzip, 7 })
			m := fmt.Sprintf("hop-%t", gzip)
			var points []sink.Point
			want := map[string]int64{}
			for i := range 100 {
				points = append(points, simple(m, fmt.Sprint(i), int64(i*i), base+int64(i)))
				want[fmt.Sprint(i)] = int64(i * i)
			}
			write(t, w, points...)
			write(t, w, points...) // once more: nothing changes
			got := map[string]int64{}
			rows := s.MustQuery(all(m))
			for _, r := range rows {
				got[r["t"].(string)] = r["_value"].(int64)
			}
			if len(rows) != len(want) || !maps.Equal(got, want) {
				t.Errorf("gzip %t: %d rows, %v", gzip, len(rows), got)
			}
			if st := w.Stats(); st.Requests != 30 || st.Points != 200 || st.Refused != 0 {
				t.Errorf("Stats = %+v", st)
			}
		}
	})
}

func TestSpecialCharacters(t *testing.T) {
	t.Parallel()
	servertest.EachInflux(t, func(t *testing.T, s *servertest.Influx) {
		w := writerTo(t, s, nil)
		// What is read back, where it is not what was written.
		changed := map[string]string{`end\`: "end/", `a\,b`: "a/,b", "x\ny": `x\ny`, "x\ty": `x\ty`, "bad\xff": "bad\ufffd"}
		values := []string{"plain", "a b", "a,b", "a=b", `"quoted"`, `in\side`, `end\`, `a\,b`, "x\ny", "x\ty", "é 世界", "bad\xff", "[2001:db8::1]:443", "'", "#"}
		var points []sink.Point
		for _, v := range values {
			points = append(points, sink.Point{Measurement: "m =,x", Tags: []sink.Tag{{Key: "t ,=k", Value: v}},
				Fields: []sink.Field{sink.StringField("text, =", v+" \"\\ x\ny"), sink.FloatField("f", 1e-300)}, Time: base})
		}
		write(t, w, points...)
		var got []string
		for _, r := range s.MustQuery(all("m =,x") + ` |> filter(fn: (r) => r._field == "text, =")`) {
			tag, text := r["t ,=k"].(string), r["_value"].(string)
			got = append(got, tag)
			i := slices.IndexFunc(values, func(v string) bool { return v == tag || changed[v] == tag })
			if i < 0 || strings.ToValidUTF8(values[i], "\ufffd")+" \"\\ x\ny" != text {
				t.Errorf("tag %q, text %q", tag, text)
			}
		}
		if len(got) != len(values) {
			t.Errorf("%d of %d series came back: %q", len(got), len(values), got)
		}
	})
}

// A point that the server refuses costs itself alone, whichever way the server refuses it.
func TestRefusedPoints(t *testing.T) {
	t.Parallel()
	conflict := func(i int64) sink.Point {
		p := simple("m", fmt.Sprint("bad", i), 0, base)
		p.Fields = []sink.Field{sink.StringField("v", "not a number")}
		return p
	}
	reserved := sink.Point{Measurement: "m", Tags: []sink.Tag{{Key: "time", Value: "1"}}, Fields: []sink.Field{sink.IntField("v", 1)}, Time: base}
	long := simple("m", strings.Repeat("x", 70_000), 1, base)

	tests := []struct {
		name    string
		bad     []sink.Point
		split   int
		shift   int64 // between two points, to reach several shards
		refused int
		words   string
	}{
		{"type conflict", []sink.Point{conflict(1)}, 64, 0, 1, "field type conflict"},
		{"three type conflicts", []sink.Point{conflict(1), conflict(2), conflict(3)}, 64, 0, 3, "field type conflict"},
		{"reserved tag", []sink.Point{reserved}, 64, 0, 1, "time"},
		{"series key too long", []sink.Point{long}, 64, 0, 1, "unable to parse"},
		{"one of each", []sink.Point{conflict(1), reserved, long}, 200, 0, 3, ""},
		{"several shards", []sink.Point{conflict(1), conflict(2)}, 64, 100 * 3600 * second, 2, "field type conflict"},
	}
	servertest.EachInflux(t, func(t *testing.T, s *servertest.Influx) {
		for n, tt := range tests {
			t.Run(tt.name, func(t *testing.T) {
				w := writerTo(t, s, func(c *Config) { c.SplitRequests = tt.split })
				m := fmt.Sprint("m", n)
				const good = 45
				var points []sink.Point
				for i := range int64(good) {
					points = append(points, simple(m, "good", i, base+i*(second+tt.shift)))
					if i%15 == 14 && len(tt.bad) > int(i/15) {
						points = append(points, tt.bad[i/15])
					}
				}
				if tt.shift == 0 {
					for i := range points { // one window has one time
						points[i].Time = base
						points[i].Tags = append([]sink.Tag{{Key: "i", Value: fmt.Sprint(i)}}, points[i].Tags...)
					}
				}
				for i := range points {
					points[i].Measurement = m
				}
				// The type of the field is settled before in every shard.
				for _, p := range points {
					first := simple(m, "first", 1, p.Time)
					write(t, w, first)
				}
				before := w.Stats().Requests
				err := w.Write(t.Context(), &sink.Batch{Points: points})
				for re := (*sink.RetryError)(nil); errors.As(err, &re) && re.Progress; {
					err = w.Write(t.Context(), &sink.Batch{Points: points})
				}
				pe, ok := errors.AsType[*sink.PermanentError](err)
				if !ok || pe.Rejected != tt.refused || !strings.Contains(pe.Error(), tt.words) {
					t.Fatalf("Write = %v (%+v), want %d refused with %q", err, pe, tt.refused, tt.words)
				}
				kept := uint64(0)
				for _, g := range pe.Refused {
					kept += g.Points
					if strings.Contains(string(g.Payload), "good") {
						t.Errorf("good points are among the refused: %q", g.Payload)
					}
				}
				if kept != uint64(tt.refused) {
					t.Errorf("%d points are in the groups", kept)
				}
				rows := s.MustQuery(all(m) + ` |> filter(fn: (r) => r.t == "good")`)
				if len(rows) != good {
					t.Errorf("%d of %d good points are there", len(rows), good)
				}
				if n := w.Stats().Requests - before; int(n) > 1+tt.split {
					t.Errorf("%d requests", n)
				}
				if st := w.Stats(); st.Refused != uint64(tt.refused) {
					t.Errorf("Stats = %+v", st)
				}
			})
		}
	})
}

// Wrong settings are reported as such and lose nothing.
func TestWrongSettings(t *testing.T) {
	t.Parallel()
	s := servertest.StartInflux(t, servertest.InfluxVersions[0])
	const wrong = "this-is-the-wrong-token"
	tests := []struct {
		name   string
		change func(*Config)
		words  string
		v2     bool
	}{
		{"token", func(c *Config) { c.TokenFile = tokenFile(t, wrong) }, "unauthorized", true},
		{"no token", func(c *Config) { c.TokenFile = "" }, "unauthorized", true},
		{"bucket", func(c *Config) { c.Bucket = "nope/nope" }, "not found", false},
		{"organisation", func(c *Config) { c.Org = "nope" }, "organization name \"nope\" not found", true},
		{"no organisation", func(c *Config) { c.Org, c.Bucket = "", "a/b" }, "org", true},
		{"path", func(c *Config) { c.URL += "/elsewhere" }, "", false},
	}
	for _, tt := range tests {
		if tt.v2 && s.Version != servertest.Influx2 {
			continue
		}
		t.Run(tt.name, func(t *testing.T) {
			w := writerTo(t, s, tt.change)
			err := w.Write(t.Context(), &sink.Batch{Points: []sink.Point{simple("m", "t", 1, base), simple("m", "u", 1, base)}})
			re, ok := errors.AsType[*sink.RetryError](err)
			if !ok || !re.Config || !strings.Contains(err.Error(), tt.words) {
				t.Errorf("Write = %#v %v, want a configuration problem with %q", err, err, tt.words)
			}
			if strings.Contains(fmt.Sprintf("%v %#v", err, err), wrong) {
				t.Error("the token is in the error")
			}
		})
	}
}

func TestServerGoneAndBack(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	servertest.EachInflux(t, func(t *testing.T, s *servertest.Influx) {
		w := writerTo(t, s, nil)
		write(t, w, simple("m", "before", 1, base))
		s.Kill()
		lost := &sink.Batch{Points: []sink.Point{simple("m", "during", 2, base)}}
		err := w.Write(t.Context(), lost)
		re, ok := errors.AsType[*sink.RetryError](err)
		if !ok || re.Config || sink.Permanent(err) {
			t.Fatalf("Write to a dead server = %#v", err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := w.Write(ctx, lost); !errors.Is(err, context.Canceled) {
			t.Errorf("Write with an ended context = %v", err)
		}
		s.Start()
		write(t, w, lost.Points...)
		s.Stop()
		s.Start()
		if rows := s.MustQuery(all("m")); len(rows) != 2 {
			t.Errorf("%d points are there, want 2: %v", len(rows), rows)
		}
	})
}

// Another program has made a field a float where ours is an integer: the server takes some points of a window and refuses
// others. What it has by its own count, and what it is said to have refused, is what was written, series by series.
func TestAnotherWriter(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	servertest.EachInflux(t, func(t *testing.T, s *servertest.Influx) {
		w := writerTo(t, s, nil)
		const windows, hops, flows = 5, 200, 9
		// The conflict holds in the shards of the first three windows and not in the others.
		shift := 200 * 3600 * second
		for i := range int64(3) {
			p := simple("hop", "theirs", 0, base+i*shift)
			p.Fields = []sink.Field{sink.FloatField("count", 0.5)}
			write(t, w, p)
		}
		made, refused := map[string]uint64{}, map[string]uint64{}
		var payload []byte
		count := func(m string, p sink.Point) {
			p.Measurement, p.Fields[0].Key = m, "count"
			made[m]++
			payload, _ = w.Encode(payload, &sink.Batch{Points: []sink.Point{p}})
		}
		for i := range int64(windows) {
			at := base + i*shift
			for h := range int64(hops) {
				p := simple("hop", fmt.Sprint("ours", h), h, at)
				if h%5 == 0 { // nothing that is in conflict
					p.Fields = append(p.Fields, sink.IntField("queue", h))
					p.Fields[0].Key, made["hop"] = "drops", made["hop"]+1
					p.Measurement = "hop"
					payload, _ = w.Encode(payload, &sink.Batch{Points: []sink.Point{p}})
					continue
				}
				count("hop", p)
			}
			for f := range int64(flows) {
				count("flow", simple("flow", fmt.Sprint(f), f, at))
			}
		}
		err := w.WriteEncoded(t.Context(), payload)
		for re := (*sink.RetryError)(nil); errors.As(err, &re) && re.Progress; {
			err = w.WriteEncoded(t.Context(), payload)
		}
		pe, ok := errors.AsType[*sink.PermanentError](err)
		if !ok {
			t.Fatalf("Write = %v", err)
		}
		for _, g := range pe.Refused {
			for _, c := range g.Series {
				refused[c.Series] += c.Points
			}
			if !strings.Contains(g.Reason, "field type conflict") {
				t.Errorf("refused for %q", g.Reason)
			}
		}
		if want := uint64(3 * hops * 4 / 5); refused["hop"] != want || refused["flow"] != 0 || pe.Rejected != int(want) {
			t.Errorf("refused %v, %d in all, want %d of hop", refused, pe.Rejected, want)
		}
		for m, n := range made {
			there := map[string]bool{}
			for i := range int64(windows) { // a query over shards with fields of two types shows those of one
				at := time.Unix(0, base+i*shift).UTC()
				q := strings.Replace(all(m), "start: 0", fmt.Sprintf("start: %s, stop: %s", at.Format(time.RFC3339), at.Add(time.Second).Format(time.RFC3339)), 1)
				for _, r := range s.MustQuery(q + ` |> filter(fn: (r) => r.t != "theirs")`) {
					there[fmt.Sprint(r["t"], r["_time"])] = true
				}
			}
			if n != uint64(len(there))+refused[m] {
				t.Errorf("%s: %d made, %d in the store, %d refused", m, n, len(there), refused[m])
			}
		}
		t.Logf("%d requests", w.Stats().Requests)
	})
}
