package influx

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/sink"
)

// influx3Double answers as the documentation and the source of InfluxDB 3 say that it does. It is no InfluxDB: none of version 3 could be
// run here. It refuses lines that hold "bad", and everything if a line holds "broken".
type influx3Double struct {
	lines     []string // stored
	noHeaders bool
}

func (d *influx3Double) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	switch r.URL.Path {
	case "/ping":
		if !d.noHeaders {
			w.Header().Set("X-Influxdb-Version", "3.2.1")
		}
		fmt.Fprint(w, `{"version":"3.2.1","revision":"0"}`)
	case "/api/v2/write":
		w.WriteHeader(http.StatusInternalServerError)
		fmt.Fprint(w, `{"code":"internal error","message":"partial write of line protocol occurred"}`)
	case "/api/v3/write_lp":
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
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

// One refused line of many does not hold up the others, and is told by its number.
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
