//go:build torture

package torture

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/hopscope/hopscope/internal/servertest"
)

// spoolCommand runs "hopscope spool" with the settings of p.
func (p *place) spoolCommand(into any, args ...string) error {
	p.t.Helper()
	c := exec.Command(program, append([]string{"spool", args[0], "--config", p.config(), "--format", "json"}, args[1:]...)...)
	c.Dir, c.Env = p.dir, append(os.Environ(), tokenEnv+"="+p.opt.server.Token)
	var out, diag bytes.Buffer
	c.Stdout, c.Stderr = &out, &diag
	if err := c.Run(); err != nil {
		return fmt.Errorf("hopscope spool %s: %v: %s", args[0], err, diag.String())
	}
	return json.Unmarshal(out.Bytes(), into)
}

// writeLine is another program that writes to the same bucket.
func writeLine(t *testing.T, s *servertest.Influx, line string) {
	t.Helper()
	q, err := http.NewRequest(http.MethodPost, s.URL+"/api/v2/write?precision=ns&bucket="+s.Bucket+"&org="+s.Org, strings.NewReader(line))
	if err != nil {
		t.Fatal(err)
	}
	if s.Token != "" {
		q.Header.Set("Authorization", "Token "+s.Token)
	}
	resp, err := http.DefaultClient.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusNoContent {
		t.Fatalf("writing a line: %s", resp.Status)
	}
}

// refusalRows let another writer make hop.count a float, so that the store refuses a part of every request. They count
// in points, since a report whose hops are refused is stored in part.
func refusalRows() []row {
	refuse := func(version string, resend bool) func(t *testing.T, r *result) {
		return func(t *testing.T, r *result) {
			r.Unit = "points"
			server := startStore(t, version)
			writeLine(t, server, fmt.Sprintf("hop,writer=stranger count=1.5 %d", time.Now().UnixNano()))
			p := newPlace(t, placeOptions{server: server})
			c := p.start()
			s := newSender(t, p.udp)
			s.send(short(4000, 40000), rate)
			time.Sleep(400 * time.Millisecond)
			if status, body := c.get("/readyz"); status == http.StatusOK {
				t.Errorf("ready while the store refuses points: %s", body)
			}
			s.trailer()
			c.drained()
			sum := c.stop()
			if sum.Ledger.Points == nil {
				t.Fatal("the ledger has no account of points")
			}
			h := count(t, server)
			r.Sent, r.Stored = sum.Ledger.Points.Made, h.points
			var entries []struct {
				Points  int64    `json:"points"`
				Problem string   `json:"problem"`
				Reasons []string `json:"reasons"`
			}
			if err := p.spoolCommand(&entries, "list"); err != nil {
				t.Fatal(err)
			}
			var kept int64
			for _, e := range entries {
				kept += e.Points
				if e.Problem != "" || !strings.Contains(strings.Join(e.Reasons, " "), "field type conflict") {
					t.Errorf("refused points without the store's words: %+v", e)
				}
			}
			if kept == 0 || kept != sum.Ledger.Points.Refused {
				t.Errorf("%d points are kept, the ledger says %d are refused", kept, sum.Ledger.Points.Refused)
			}
			if !resend {
				r.Lost["refused and kept"] = kept
				r.settle()
				return
			}
			other := startStore(t, version)
			p.opt.store = other.URL
			var sent []struct {
				Stored, Refused, Left int64
			}
			if err := p.spoolCommand(&sent, "resend"); err != nil {
				t.Error(err)
			}
			second := count(t, other)
			r.Stored += second.points
			if len(sent) != 1 || sent[0].Stored != second.points || sent[0].Refused+sent[0].Left != 0 {
				t.Errorf("resend says %+v, the store has %d", sent, second.points)
			}
			if all := h.hops + second.hops; all != hops*h.reports {
				t.Errorf("the stores have %d hops of %d reports", all, h.reports)
			}
			r.Remark = fmt.Sprintf("%d points refused, kept and sent again", kept)
			r.settle()
		}
	}
	return []row{
		{name: "another writer made hop.count a float, " + servertest.Influx2, run: refuse(servertest.Influx2, false)},
		{name: "another writer made hop.count a float, " + servertest.Influx1, run: refuse(servertest.Influx1, false)},
		{name: "the same, sent again with spool resend", run: refuse(servertest.Influx2, true)},
	}
}

// instanceRows let two collectors write to one bucket.
func instanceRows() []row {
	return []row{
		{name: "two collectors on one bucket", run: func(t *testing.T, r *result) {
			server := startStore(t, servertest.Influx2)
			var sent int64
			var places []*place
			var senders []*sender
			var runs []*run
			for _, name := range []string{"left", "right"} {
				p := newPlace(t, placeOptions{server: server, instance: name})
				places, runs, senders = append(places, p), append(runs, p.start()), append(senders, newSender(t, p.udp))
			}
			for range 4 {
				for _, s := range senders {
					s.send(short(1000, 10000), rate)
				}
			}
			for i, s := range senders {
				s.trailer()
				runs[i].drained()
				runs[i].stop()
				sent += s.sent.Load()
			}
			places[0].runs = append(places[0].runs, places[1].runs...)
			places[0].balance(r, sent, true)
		}},
		{name: "two collectors of one name are reported", run: func(t *testing.T, r *result) {
			server := startStore(t, servertest.Influx2)
			var places []*place
			var senders []*sender
			var runs []*run
			for range 2 {
				p := newPlace(t, placeOptions{server: server, instance: "twin"})
				places, runs, senders = append(places, p), append(runs, p.start()), append(senders, newSender(t, p.udp))
			}
			for _, s := range senders {
				s.start(200)
			}
			waitFor(t, 30*time.Second, "both to name the other", func() bool {
				for i, p := range places {
					_, body := runs[i].get("/readyz")
					if rivals, _ := runs[i].metric("hopscope_instance_rivals"); rivals == 0 || !strings.Contains(body, "instance") || !strings.Contains(p.logged(), "instance") {
						return false
					}
				}
				return true
			})
			for i, s := range senders {
				s.stop()
				runs[i].stop()
			}
			r.Unit = "" // nothing to count: their points take each other's place
			r.Remark = "reported by both, and nothing more: their points take each other's place"
		}},
	}
}
