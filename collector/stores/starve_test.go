package stores

import (
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hopscope/hopscope/internal/testkit"
	"github.com/hopscope/hopscope/sink"
	"github.com/hopscope/hopscope/sink/influx"
	"github.com/hopscope/hopscope/sink/notify"
	"github.com/hopscope/hopscope/sink/notify/receiver"
)

// partner is a server that fails for some items, and counts its requests as its time. Requests for an item that failed
// alone before are not counted: their number depends on the machine. Their share is checked in virtual time, by the
// tests of package sink.
type partner struct {
	mu       sync.Mutex
	fails    bool
	items    map[string]bool // good ones that arrived, and bad ones that failed alone
	requests int
	when     int // of the last new one
}

func (p *partner) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body := r.Body
	if r.Header.Get("Content-Encoding") == "gzip" {
		body, _ = gzip.NewReader(r.Body)
	}
	b, _ := io.ReadAll(body)
	p.mu.Lock()
	defer p.mu.Unlock()
	if name := string(b); strings.Count(name, "item") == 1 {
		if _, rest, _ := strings.Cut(name, "item"); len(rest) >= 4 && rest[3] == 'x' && p.fails {
			if !p.items[rest[:4]] {
				p.items[rest[:4]] = true
				p.requests++
			}
			http.Error(w, "panic", http.StatusInternalServerError)
			return
		}
	}
	p.requests++
	var good []string
	for rest, found := string(b), true; ; {
		if _, rest, found = strings.Cut(rest, "item"); !found || len(rest) < 4 {
			break
		}
		name := rest[:4]
		if name[3] == 'x' && p.fails {
			http.Error(w, "panic", http.StatusInternalServerError)
			return
		}
		good = append(good, name)
	}
	for _, name := range good {
		if name[3] != 'x' && !p.items[name] {
			p.items[name], p.when = true, p.requests
		}
	}
	w.WriteHeader(http.StatusNoContent)
}

func (p *partner) arrived() (items, when int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for name := range p.items {
		if name[3] != 'x' {
			n++
		}
	}
	return n, p.when
}

// itemName names item i; every third ends with an x, and is one that a partner fails for.
func itemName(i int) string {
	if i%3 == 0 {
		return fmt.Sprintf("item%03dx", i)
	}
	return fmt.Sprintf("item%03do", i)
}

func alertItem(i int) *sink.Batch {
	at := time.Unix(int64(1_800_000_000+i), 0).UTC()
	return notify.Batch([]notify.Alert{{Status: notify.Firing, Instance: "here", Key: "high-latency " + itemName(i), Kind: "high-latency", Severity: "warning", Element: itemName(i), Start: at, Updated: at, Time: at}})
}

func pointItem(i int) *sink.Batch {
	return &sink.Batch{Reports: 1, Points: []sink.Point{{Measurement: "m", Tags: []sink.Tag{{Key: "name", Value: itemName(i)}}, Fields: []sink.Field{sink.IntField("v", 1)}, Time: int64(i)}}}
}

// Every store whose partner fails for one item of three delivers all others within twice the time of a healthy
// partner. A request is a unit of time. Items come alone or together, and failed ones are kept.
func TestOneOfThreeFails(t *testing.T) {
	const items, good = 60, 40
	for _, tt := range []struct {
		name string
		open func(url string) (sink.Writer, error)
		item func(int) *sink.Batch
	}{
		{"webhook", func(url string) (sink.Writer, error) {
			var c receiver.Webhook
			c.SetDefaults()
			c.URL = url
			return c.Open()
		}, alertItem},
		{"alertmanager", func(url string) (sink.Writer, error) {
			var c receiver.Alertmanager
			c.SetDefaults()
			c.URL = url
			return c.Open()
		}, alertItem},
		{"influx", func(url string) (sink.Writer, error) {
			var c influx.Config
			c.SetDefaults()
			c.URL, c.Org, c.Bucket = url, "o", "b"
			return c.Open()
		}, pointItem},
	} {
		for _, together := range []int{1, 20} {
			t.Run(fmt.Sprintf("%s/%d", tt.name, together), func(t *testing.T) {
				var took [2]int
				for i, fails := range []bool{false, true} {
					p := &partner{fails: fails, items: map[string]bool{}}
					s := httptest.NewServer(p)
					defer s.Close()
					w, err := tt.open(s.URL)
					if err != nil {
						t.Fatal(err)
					}
					conf := sink.DefaultQueueConfig()
					conf.RetryMin, conf.RetryMax = 5*time.Second, 5*time.Second // many requests long, as they are in use
					folder := sink.OpenRefused(t.TempDir(), 1<<20)
					q := sink.NewQueue(w, conf, sink.QueueOptions{Refused: folder})
					for n := 0; n < items; {
						b := tt.item(n)
						for n++; n%together != 0; n++ {
							b.Points = append(b.Points, tt.item(n).Points...)
						}
						if err := q.Put(t.Context(), b); err != nil {
							t.Fatal(err)
						}
					}
					q.Start()
					testkit.Until(t, "all good items arrived", func() bool { n, _ := p.arrived(); return n == good })
					_, took[i] = p.arrived()
					if err := q.Close(t.Context()); err != nil {
						t.Fatal(err)
					}
					if st := q.Stats(); i == 1 && (st.PointsRejected != items-good || st.PointsWritten != good || folder.Stats().LostPoints > 0) {
						t.Errorf("%+v", st)
					}
				}
				if healthy := max(took[0], items); took[1] > 2*healthy { // as many requests as there are items
					t.Errorf("the good items took %d requests, and %d of a healthy partner", took[1], took[0])
				}
			})
		}
	}
}
