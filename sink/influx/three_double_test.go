package influx

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/hopscope/hopscope/sink"
)

// influx3Double answers as the documentation and the source of InfluxDB 3 say that it does. It is no InfluxDB: none of version 3 could be
// run here. It refuses lines that hold "bad", and everything if a line holds "broken".
type influx3Double struct {
	lines     []string // stored
	noHeaders bool
	noPing    bool // what stands before it does not let that through
	wrong     bool // the lines that it names are none of the request
	packed    int  // this request
	plain     int  // requests to its own address that were not packed
	queries   []string
}

func (d *influx3Double) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	in := r.Body
	d.packed = 0
	if r.Header.Get("Content-Encoding") == "gzip" {
		d.packed++
		z, err := gzip.NewReader(r.Body)
		if err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		in = z
	}
	body, _ := io.ReadAll(in)
	switch r.URL.Path {
	case "/ping":
		if d.noPing {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		if !d.noHeaders {
			w.Header().Set("X-Influxdb-Version", "3.2.1")
		}
		fmt.Fprint(w, `{"version":"3.2.1","revision":"0"}`)
	case "/api/v2/write":
		w.WriteHeader(http.StatusInternalServerError)
		fmt.Fprint(w, `{"code":"internal error","message":"partial write of line protocol occurred"}`)
	case "/api/v3/write_lp":
		d.plain += 1 - d.packed
		d.packed = 0
		if q := r.URL.Query(); q.Get("precision") != "nanosecond" || q.Get("accept_partial") != "true" || q.Get("db") == "" {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		var refused, kept []string
		for i, line := range strings.Split(strings.TrimSpace(string(body)), "\n") {
			switch {
			case strings.Contains(line, "broken"):
				w.WriteHeader(http.StatusBadRequest)
				fmt.Fprintf(w, `{"error":"parsing failed for write_lp endpoint","data":{"original_line":"x","line_number":%d,"error_message":"no fields"}}`, i+1)
				return
			case strings.Contains(line, "bad"):
				if d.wrong {
					i = -1
				}
				refused = append(refused, fmt.Sprintf(`{"original_line":"x","line_number":%d,"error_message":"column is of type u64"}`, i+1))
			default:
				kept = append(kept, line)
			}
		}
		d.lines = append(d.lines, kept...)
		if len(refused) == 0 {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprintf(w, `{"error":"partial write of line protocol occurred","data":[%s]}`, strings.Join(refused, ","))
	case "/api/v3/query_sql":
		q := r.URL.Query()
		d.queries = append(d.queries, q.Get("q"))
		if q.Get("db") != "hopscope" || q.Get("format") != "json" {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		if len(d.queries) > 1 {
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprint(w, `{"error":"query error: table 'public.iox.collector' not found"}`)
			return
		}
		fmt.Fprint(w, `[{"boot":"one","time":"2026-01-02T03:04:05.000000006"},{"boot":"two","time":"2026-01-02T03:04:06Z"}]`)
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

// Five of 2,500 points are refused, and the others are stored. This holds packed or not, when a proxy hides the
// version, and when the server names lines that do not exist.
func TestInflux3DoubleFlows(t *testing.T) {
	for name, d := range map[string]*influx3Double{"plain": {}, "no headers": {noHeaders: true}, "no ping": {noPing: true}, "no such lines": {wrong: true}} {
		for _, packed := range []bool{false, true} {
			double := *d
			s := httptest.NewServer(&double)
			defer s.Close()
			conf := DefaultConfig()
			conf.URL, conf.TokenFile, conf.Gzip, conf.BatchPoints = s.URL, tokenFile(t, "secret"), packed, 500
			w, err := New(conf)
			if err != nil {
				t.Fatal(err)
			}
			var lines strings.Builder
			for i := range 2500 {
				fmt.Fprintf(&lines, "%s v=%di %d\n", []string{"hop", "bad"}[(i+1)%500/499], i, 1700000000000000000+i)
			}
			var p *sink.PermanentError
			for range 20 {
				if err = w.WriteEncoded(t.Context(), []byte(lines.String())); errors.As(err, &p) {
					break
				}
			}
			good := map[string]bool{}
			for _, line := range double.lines {
				good[line] = true
			}
			if p == nil || p.Rejected != 5 || len(good) != 2495 || packed != (double.plain == 0) {
				t.Errorf("%s, packed %v: %v, %d lines are stored, %d requests not packed", name, packed, err, len(good), double.plain)
			}
		}
	}
}

// What version 3 holds is read back in SQL; before the first point there is nothing.
func TestInflux3DoubleRuns(t *testing.T) {
	d := &influx3Double{}
	s := httptest.NewServer(d)
	defer s.Close()
	conf := DefaultConfig()
	conf.URL, conf.TokenFile = s.URL, tokenFile(t, "secret")
	w, err := New(conf)
	if err != nil {
		t.Fatal(err)
	}
	since := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	runs, err := w.Runs(t.Context(), "it's", since)
	if at := runs["one"]; err != nil || len(runs) != 2 || !at.Equal(time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)) {
		t.Errorf("runs %v, %v", runs, err)
	}
	if q := d.queries[0]; !strings.Contains(q, "instance = 'it''s'") || !strings.Contains(q, "2026-01-01T00:00:00Z") {
		t.Errorf("it was asked %s", q)
	}
	if runs, err := w.Runs(t.Context(), "it's", since); err != nil || len(runs) != 0 {
		t.Errorf("without a table: %v, %v", runs, err)
	}
}

// One refused line of many does not hold up the others, and is reported by its number.
func TestInflux3Double(t *testing.T) {
	for _, noHeaders := range []bool{false, true} {
		for _, word := range []string{"bad", "broken"} {
			d := &influx3Double{noHeaders: noHeaders}
			s := httptest.NewServer(d)
			defer s.Close()
			conf := DefaultConfig()
			conf.URL, conf.Org, conf.Bucket, conf.TokenFile = s.URL, "here", "hopscope", tokenFile(t, "secret")
			w, err := New(conf)
			if err != nil {
				t.Fatal(err)
			}
			var lines strings.Builder
			for i := range 100 {
				name := "hop"
				if i == 41 {
					name = word
				}
				fmt.Fprintf(&lines, "%s v=%di %d\n", name, i, 1700000000000000000+i)
			}
			err = w.WriteEncoded(t.Context(), []byte(lines.String()))
			var p *sink.PermanentError
			if !errors.As(err, &p) || p.Rejected != 1 || len(p.Refused) != 1 || !strings.Contains(string(p.Refused[0].Payload), word+" v=41i") {
				t.Errorf("%s: %v", word, err)
			}
			if len(d.lines) != 99 {
				t.Errorf("%s: %d lines are stored, want 99", word, len(d.lines))
			}
		}
	}
}
