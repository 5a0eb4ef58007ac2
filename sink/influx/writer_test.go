package influx

import (
	"compress/gzip"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hopscope/hopscope/sink"
)

// fake answers writes by the rules of a test; the real servers cannot be made to give these answers.
func fake(t *testing.T, change func(*Config), answer func(w http.ResponseWriter, lines []string)) *writer {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/ping" { // asked once what it is
			w.Header().Set("X-Influxdb-Version", "v2.7.12")
			w.WriteHeader(http.StatusNoContent)
			return
		}
		var body io.Reader = r.Body
		if r.Header.Get("Content-Encoding") == "gzip" {
			z, err := gzip.NewReader(r.Body)
			if err != nil {
				t.Errorf("not gzip: %v", err)
				return
			}
			body = z
		}
		b, err := io.ReadAll(body)
		if err != nil {
			t.Errorf("read request: %v", err)
		}
		answer(w, strings.Split(strings.TrimSuffix(string(b), "\n"), "\n"))
	}))
	t.Cleanup(srv.Close)
	c := DefaultConfig()
	c.URL = srv.URL
	c.Timeout = 5 * time.Second
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

func batch(n int) *sink.Batch {
	b := &sink.Batch{}
	for i := range n {
		b.Points = append(b.Points, simple("m", fmt.Sprint(i), int64(i), base))
	}
	return b
}

func TestAnswers(t *testing.T) {
	header := func(kv ...string) http.Header {
		h := http.Header{}
		for i := 0; i < len(kv); i += 2 {
			h.Set(kv[i], kv[i+1])
		}
		return h
	}
	tests := []struct {
		status int
		header http.Header
		body   string
		after  time.Duration
		config bool
		words  string
	}{
		{status: 429, header: header("Retry-After", "7"), after: 7 * time.Second, words: "429 Too Many Requests"},
		{status: 503, header: header("Retry-After", "999999"), after: 5 * time.Minute, words: "503"},
		{status: 503, header: header("Retry-After", "Thu, 01 Jan 2026 00:00:30 GMT", "Date", "Thu, 01 Jan 2026 00:00:00 GMT"), after: 30 * time.Second},
		{status: 503, header: header("Retry-After", "soon")},
		{status: 503, header: header("Content-Type", "application/json"), body: `{"code":"unavailable","message":"full","err":"x"}`, words: "Unavailable: full"},
		{status: 500, body: "broken", words: "500 Internal Server Error: broken"},
		{status: 502, body: strings.Repeat("x", 1<<20), words: "…"},
		{status: 400, config: true, words: "400 Bad Request"},
		{status: 400, body: "Client sent an HTTP request to an HTTPS server.\n", config: true, words: "HTTPS server"},
		{status: 400, header: header("Content-Type", "text/html"), body: "<html><h1>unable to parse the partial write</h1></html>", config: true, words: "<html>"},
		{status: 422, body: "unable to parse", config: true, words: "unable to parse"},
		{status: 400, body: `{"error":"unable to parse 'm': no proof that a store said it"}`, config: true, words: "no proof"},
		{status: 422, body: `{"code":"invalid","message":"the WAF does not like you"}`, config: true, words: "WAF"},
		{status: 400, header: header("X-Influxdb-Version", "1.8.10"), body: `{"error":"invalid precision"}`, config: true, words: "precision"},
		{status: 400, header: header("X-Influxdb-Version", "1.8.10"), body: "unable to parse", config: true},
		{status: 400, header: header(documentHeader, documentPoints), body: "unable to parse", config: true, words: "unable"},
		{status: 422, header: header(documentHeader, documentCut), body: `["partial write"]`, config: true, words: "partial write"},
		{status: 405, config: true, words: "405"},
		{status: 407, config: true, words: "407"},
		{status: 418, body: "I'm a teapot", config: true, words: "teapot"},
		{status: 408, words: "408"},
		{status: 202, config: true, words: "no answer of an InfluxDB"},
		{status: 301, header: header("Location", "/login"), config: true},
		{status: 401, header: header("Content-Type", "application/json"), body: `{"error":"unable to parse authentication credentials"}`, config: true, words: "unable to parse auth"},
		{status: 403, config: true, words: "403 Forbidden"},
		{status: 404, config: true},
		{status: 302, header: header("Location", "/login"), config: true},
		{status: 200, body: "<html>welcome</html>", config: true, words: "no answer of an InfluxDB"},
		{status: 400, body: `{"code":"invalid","message":"Please provide either orgID or org"}`, config: true, words: "orgID"},
	}
	for _, tt := range tests {
		t.Run(fmt.Sprint(tt.status, " ", tt.words), func(t *testing.T) {
			requests := 0
			w := fake(t, nil, func(w http.ResponseWriter, _ []string) {
				requests++
				for k, v := range tt.header {
					w.Header()[k] = v
				}
				w.WriteHeader(tt.status)
				io.WriteString(w, tt.body)
			})
			err := w.Write(t.Context(), batch(4))
			re, ok := errors.AsType[*sink.RetryError](err)
			if !ok || re.After != tt.after || re.Config != tt.config || !strings.Contains(err.Error(), tt.words) {
				t.Errorf("Write = %v (%+v)", err, re)
			}
			if len(err.Error()) > maxMessage+200 {
				t.Errorf("the error is %d bytes long", len(err.Error()))
			}
			if requests != 1 {
				t.Errorf("%d requests, want 1", requests)
			}
		})
	}
}

// condemn answers as InfluxDB 2.7 does to points that it cannot read.
func condemn(w http.ResponseWriter, message string) {
	w.Header().Set("X-Influxdb-Version", "v2.7.12")
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(http.StatusBadRequest)
	fmt.Fprintf(w, `{"code":"invalid","message":%q}`, message)
}

// A server limits the size of requests. Halves are sent until they fit, the size that passes is kept, and a point that
// never fits is refused alone.
func TestTooLarge(t *testing.T) {
	seen := map[string]int{}
	refused := 0
	const limit = 1000
	w := fake(t, nil, func(w http.ResponseWriter, lines []string) {
		if len(strings.Join(lines, "\n"))+1 > limit {
			refused++
			w.WriteHeader(http.StatusRequestEntityTooLarge)
			io.WriteString(w, "<html>nginx</html>")
			return
		}
		for _, l := range lines {
			seen[l]++
		}
		w.WriteHeader(http.StatusNoContent)
	})
	b := batch(200)
	b.Points[0].Tags[0].Value = strings.Repeat("x", limit)
	err := w.Write(t.Context(), b)
	pe, ok := errors.AsType[*sink.PermanentError](err)
	if !ok || pe.Rejected != 1 || len(seen) != 199 || len(pe.Refused) != 1 || !strings.Contains(string(pe.Refused[0].Payload), "xxxx") {
		t.Errorf("Write = %v (%+v), %d points stored; want 1 refused and 199 stored", err, pe, len(seen))
	}
	for l, n := range seen {
		if n != 1 {
			t.Errorf("%q was stored %d times", l, n)
		}
	}
	// From now on requests have a size that passes; a higher one is tried now and then.
	refused = 0
	before := w.Stats().Requests
	for range 50 {
		if err := w.Write(t.Context(), batch(200)); err != nil {
			t.Fatal(err)
		}
	}
	requests := w.Stats().Requests - before
	if refused == 0 || refused > int(requests)/growAfter {
		t.Errorf("%d of %d requests were too large", refused, requests)
	}
	if perRequest := 50 * 200 / requests; perRequest < 10 {
		t.Errorf("%d points in a request, though %d bytes pass", perRequest, limit)
	}
}

// Where no request passes at all, it is not the points that are too large.
func TestTooLargeForEverything(t *testing.T) {
	up := false
	stored := 0
	w := fake(t, nil, func(w http.ResponseWriter, lines []string) {
		if !up {
			w.WriteHeader(http.StatusRequestEntityTooLarge)
			return
		}
		stored += len(lines)
		w.WriteHeader(http.StatusNoContent)
	})
	for range 3 {
		err := w.Write(t.Context(), batch(9))
		if re, ok := errors.AsType[*sink.RetryError](err); !ok || !re.Config || !strings.Contains(err.Error(), "raise the limit") {
			t.Fatalf("Write = %v", err)
		}
	}
	up = true
	if err := w.Write(t.Context(), batch(9)); err != nil || stored != 9 {
		t.Errorf("Write = %v, %d stored", err, stored)
	}
}

// Distinguishing refused points from good ones costs a bounded number of requests a try, and goes on at the next. In the end exactly
// the refused ones are refused, each once.
func TestSplitBudget(t *testing.T) {
	for _, budget := range []int{0, 1, 2, 9, 64} {
		seen := map[string]int{}
		requests := 0
		bad := func(l string) bool { return strings.Contains(l, "t=13") || strings.Contains(l, "t=4 ") }
		w := fake(t, func(c *Config) { c.SplitRequests = budget }, func(w http.ResponseWriter, lines []string) {
			requests++
			if i := slices.IndexFunc(lines, bad); i >= 0 {
				condemn(w, fmt.Sprintf("unable to parse '%s': because", lines[i]))
				return
			}
			for _, l := range lines {
				seen[l]++
			}
			w.WriteHeader(http.StatusNoContent)
		})
		b := batch(1000)
		var pe *sink.PermanentError
		for try := range 1000 {
			requests = 0
			err := w.Write(t.Context(), b)
			if requests > max(budget, 1)+1 {
				t.Fatalf("budget %d: %d requests", budget, requests)
			}
			if errors.As(err, &pe) {
				break
			}
			re, ok := errors.AsType[*sink.RetryError](err)
			if !ok || !re.Progress || re.Config {
				t.Fatalf("budget %d, try %d: Write = %v", budget, try, err)
			}
		}
		if pe == nil || pe.Rejected != 12 || len(seen) != 988 {
			t.Fatalf("budget %d: %v, %d stored; want 12 refused and 988 stored", budget, pe, len(seen))
		}
		for l, n := range seen {
			if n != 1 || bad(l) {
				t.Errorf("%q was stored %d times", l, n)
			}
		}
		n := uint64(0)
		for _, g := range pe.Refused {
			if n += g.Points; !bad(string(g.Payload)) || !strings.Contains(g.Reason, "because") || g.Series[0] != (sink.SeriesCount{Series: "m", Points: g.Points}) {
				t.Errorf("refused: %+v", g)
			}
		}
		if n != 12 {
			t.Errorf("%d points are in the groups", n)
		}
		if err := w.Write(t.Context(), batch(3)); err != nil {
			t.Errorf("the next Write = %v", err)
		}
	}
}

// An answer that is longer than is read is asked for again with fewer points.
func TestLongAnswers(t *testing.T) {
	for _, inHeader := range []bool{false, true} {
		w := fake(t, func(c *Config) { c.Timeout = time.Minute }, func(w http.ResponseWriter, lines []string) {
			if len(lines) == 1 && strings.Contains(lines[0], "t=1 ") {
				w.WriteHeader(http.StatusNoContent)
				return
			}
			text := strings.Repeat(`unable to parse a point. `, len(lines)*(maxAnswer/100)) // a quarter of it for one
			w.Header().Set("X-Influxdb-Version", "1.8.10")
			if inHeader {
				w.Header().Set("X-Influxdb-Error", text)
			}
			w.WriteHeader(http.StatusBadRequest)
			io.WriteString(w, `{"error":"`+text+`"}`)
		})
		err := w.Write(t.Context(), batch(16))
		if pe, ok := errors.AsType[*sink.PermanentError](err); !ok || pe.Rejected != 15 {
			t.Errorf("in the header %t: Write = %v", inHeader, err)
		}
	}
}

// Points after a refused request are still written. An error that may pass ends the write, and the next one continues.
func TestRequestsOfOneWrite(t *testing.T) {
	requests := 0
	w := fake(t, func(c *Config) { c.BatchPoints, c.SplitRequests = 10, 64 }, func(w http.ResponseWriter, lines []string) {
		requests++
		switch {
		case requests == 3:
			w.WriteHeader(http.StatusServiceUnavailable)
		case strings.HasPrefix(lines[0], "m,t=0 "):
			w.Header().Set("X-Influxdb-Version", "1.8.10")
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprintf(w, `{"error":"partial write: no dropped=%d"}`, len(lines))
		default:
			w.WriteHeader(http.StatusNoContent)
		}
	})
	err := w.Write(t.Context(), batch(50))
	if _, ok := errors.AsType[*sink.RetryError](err); !ok || requests != 3 {
		t.Errorf("Write = %v after %d requests, want a passing error after 3", err, requests)
	}
	err = w.Write(t.Context(), batch(50))
	if pe, ok := errors.AsType[*sink.PermanentError](err); !ok || pe.Rejected != 10 || requests != 6 {
		t.Errorf("Write = %v after %d requests, want 10 refused after 6", err, requests)
	}
	err = w.Write(t.Context(), batch(50)) // nothing is left of that
	if pe, ok := errors.AsType[*sink.PermanentError](err); !ok || pe.Rejected != 10 || requests != 11 {
		t.Errorf("Write = %v after %d requests, want 10 refused after 11", err, requests)
	}
}

func TestNotFiniteIsCounted(t *testing.T) {
	var got []string
	w := fake(t, nil, func(w http.ResponseWriter, lines []string) {
		got = lines
		w.WriteHeader(http.StatusNoContent)
	})
	b := batch(2)
	b.Points[0].Fields = append(b.Points[0].Fields, sink.FloatField("x", math.NaN()))
	b.Points[1].Fields = []sink.Field{sink.FloatField("x", math.Inf(1)), sink.FloatField("y", math.NaN())}
	if err := w.Write(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	if st := w.Stats(); len(got) != 1 || st.FieldsDropped != 3 || st.PointsDropped != 1 {
		t.Errorf("sent %q, Stats = %+v", got, st)
	}
	b.Points = b.Points[1:]
	if err := w.Write(t.Context(), b); err != nil || w.Stats().Requests != 1 {
		t.Errorf("Write of nothing = %v, %d requests", err, w.Stats().Requests)
	}
}

func TestTLS(t *testing.T) {
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusNoContent) }))
	srv.Config.ErrorLog = log.New(io.Discard, "", 0)
	srv.StartTLS()
	t.Cleanup(srv.Close)
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name   string
		change func(*Config)
		ok     bool
	}{
		{"unknown authority", func(*Config) {}, false},
		{"ca_file", func(c *Config) { c.CAFile = ca }, true},
		{"tls_insecure", func(c *Config) { c.TLSInsecure = true }, true},
	} {
		c := DefaultConfig()
		c.URL = srv.URL
		tt.change(&c)
		w, err := New(c)
		if err != nil {
			t.Fatal(err)
		}
		err = w.Write(t.Context(), batch(1))
		if re, ok := errors.AsType[*sink.RetryError](err); (err == nil) != tt.ok || !tt.ok && (!ok || !re.Config) {
			t.Errorf("%s: Write = %v", tt.name, err)
		}
		w.Close()
	}
}

func TestConfig(t *testing.T) {
	valid := DefaultConfig()
	if err := valid.Validate(); err != nil {
		t.Errorf("the default configuration: %v", err)
	}
	tests := []struct {
		change func(*Config)
		words  []string // one a problem
	}{
		{func(c *Config) { c.URL = "localhost:8086" }, []string{"url: must be"}},
		{func(c *Config) { c.URL = "http://u:secret@h" }, []string{"url: must not hold"}},
		{func(c *Config) { c.URL = "http://u:secret@h:x" }, []string{"url: is not"}},
		{func(c *Config) { c.URL = "http://h/?q=1" }, []string{"url: must end"}},
		{func(c *Config) { c.CAFile = "x" }, []string{"url: is http"}},
		{func(c *Config) { c.Bucket, c.Org = "", "" }, []string{"bucket:", "org:"}},
		{func(c *Config) { c.Bucket, c.Org = "db/rp", "" }, nil},
		{func(c *Config) { c.TokenFile, c.TokenEnv = "a", "b" }, []string{"token_file:"}},
		{func(c *Config) { c.URL, c.CertFile = "https://h", "a" }, []string{"cert_file:"}},
		{func(c *Config) { c.URL, c.TLSInsecure, c.CAFile = "https://h", true, "a" }, []string{"tls_insecure:"}},
	}
	for _, tt := range tests {
		c := DefaultConfig()
		tt.change(&c)
		err := c.Validate()
		lines := strings.Split(fmt.Sprint(err), "\n")
		if len(tt.words) == 0 && err == nil {
			continue
		}
		if len(lines) != len(tt.words) {
			t.Errorf("Validate(%+v) = %v, want %q", c, err, tt.words)
			continue
		}
		for i, w := range tt.words {
			if !strings.HasPrefix(lines[i], w) || strings.Contains(lines[i], "secret") {
				t.Errorf("Validate = %q, want %q", lines[i], w)
			}
		}
	}
}

// Open returns no writer at all with an error, not an interface that holds nil.
func TestConfigOpen(t *testing.T) {
	var c Config
	c.SetDefaults()
	if got, want := c.Target(), "http://127.0.0.1:8086, bucket hopscope"; got != want {
		t.Errorf("Target() = %q, want %q", got, want)
	}
	w, err := c.Open()
	if err != nil || w.Name() != "influx" {
		t.Fatalf("Open() = %v, %v", w, err)
	}
	w.Close()
	c.Bucket = ""
	if w, err := c.Open(); w != nil || err == nil {
		t.Errorf("Open() = %v, %v", w, err)
	}
}

func TestToken(t *testing.T) {
	empty := tokenFile(t, "")
	t.Setenv("HOPSCOPE_TEST_TOKEN", " from-env\n")
	tests := []struct {
		c    Config
		want string
		ok   bool
	}{
		{Config{}, "", true},
		{Config{TokenFile: tokenFile(t, "abc==")}, "abc==", true},
		{Config{TokenEnv: "HOPSCOPE_TEST_TOKEN"}, "from-env", true},
		{Config{TokenEnv: "HOPSCOPE_TEST_NOT_SET"}, "", false},
		{Config{TokenFile: empty}, "", false},
		{Config{TokenFile: empty + "-missing"}, "", false},
		{Config{TokenFile: tokenFile(t, "two\nlines")}, "", false},
	}
	for _, tt := range tests {
		got, err := tt.c.token()
		if got != tt.want || (err == nil) != tt.ok {
			t.Errorf("token(%+v) = %q, %v", tt.c, got, err)
		}
		if err != nil && strings.Contains(err.Error(), "lines") {
			t.Errorf("the token is in the error: %v", err)
		}
	}
}
