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

// fake answers writes as a test says; the real servers cannot be made to give these answers.
func fake(t *testing.T, change func(*Config), answer func(w http.ResponseWriter, lines []string)) *Writer {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
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
		{status: 503, header: header("Retry-After", "999999"), after: maxRetryAfter, words: "503"},
		{status: 503, header: header("Retry-After", "Thu, 01 Jan 2026 00:00:30 GMT", "Date", "Thu, 01 Jan 2026 00:00:00 GMT"), after: 30 * time.Second},
		{status: 503, header: header("Retry-After", "soon")},
		{status: 503, header: header("Content-Type", "application/json"), body: `{"code":"unavailable","message":"full","err":"x"}`, words: "Unavailable: full"},
		{status: 500, body: "broken", words: "500 Internal Server Error: broken"},
		{status: 502, body: strings.Repeat("x", 1<<20), words: "…"},
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

// A server with a limit on requests: halves are sent until they fit, and a point that never fits is refused alone.
func TestTooLarge(t *testing.T) {
	seen := map[string]bool{}
	w := fake(t, nil, func(w http.ResponseWriter, lines []string) {
		if len(lines) > 3 || slices.ContainsFunc(lines, func(l string) bool { return len(l) > 1000 }) {
			w.WriteHeader(http.StatusRequestEntityTooLarge)
			return
		}
		for _, l := range lines {
			seen[l] = true
		}
		w.WriteHeader(http.StatusNoContent)
	})
	b := batch(20)
	b.Points[11].Tags[0].Value = strings.Repeat("x", 1000)
	err := w.Write(t.Context(), b)
	pe, ok := errors.AsType[*sink.PermanentError](err)
	if !ok || pe.Rejected != 1 || len(seen) != 19 {
		t.Errorf("Write = %v, %d points stored; want 1 refused and 19 stored", err, len(seen))
	}
}

// When nothing is accepted the number of requests stays bounded.
func TestSplitBudget(t *testing.T) {
	for _, budget := range []int{0, 1, 2, 9, 64} {
		requests := 0
		w := fake(t, func(c *Config) { c.SplitRequests = budget }, func(w http.ResponseWriter, _ []string) {
			requests++
			w.WriteHeader(http.StatusBadRequest)
			io.WriteString(w, "unable to parse anything")
		})
		err := w.Write(t.Context(), batch(1000))
		pe, ok := errors.AsType[*sink.PermanentError](err)
		if !ok || pe.Rejected != 1000 || requests > 1+budget {
			t.Errorf("budget %d: %v, %d requests", budget, err, requests)
		}
	}
}

// What comes after a refused request is still written; an error that may pass ends the write.
func TestRequestsOfOneWrite(t *testing.T) {
	requests := 0
	w := fake(t, func(c *Config) { c.BatchPoints, c.SplitRequests = 10, 0 }, func(w http.ResponseWriter, _ []string) {
		requests++
		switch requests {
		case 1:
			w.WriteHeader(http.StatusUnprocessableEntity)
			io.WriteString(w, "no")
		case 3:
			w.WriteHeader(http.StatusServiceUnavailable)
		default:
			w.WriteHeader(http.StatusNoContent)
		}
	})
	err := w.Write(t.Context(), batch(50))
	if _, ok := errors.AsType[*sink.RetryError](err); !ok || requests != 3 {
		t.Errorf("Write = %v after %d requests, want a passing error after 3", err, requests)
	}
	err = w.Write(t.Context(), batch(50))
	if err != nil || requests != 8 {
		t.Errorf("Write = %v after %d requests, want none after 8", err, requests)
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
		if err := w.Write(t.Context(), batch(1)); (err == nil) != tt.ok {
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

// Open gives no writer at all with an error, not an interface that holds nil.
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
