package influx

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/hopscope/hopscope/internal/servertest"
	"github.com/hopscope/hopscope/sink"
)

func runPoint(instance, boot string, at int64) sink.Point {
	return sink.Point{Measurement: "collector", Tags: []sink.Tag{{Key: "instance", Value: instance}},
		Fields: []sink.Field{sink.StringField("boot", boot), sink.IntField("reports", 1)}, Time: at}
}

// The runs of one instance are those that wrote under its name since a time, with the time of their latest window.
func TestRuns(t *testing.T) {
	t.Parallel()
	servertest.EachInflux(t, func(t *testing.T, s *servertest.Influx) {
		w := writerTo(t, s, nil)
		none, err := w.Runs(t.Context(), "here", time.Unix(0, base))
		if err != nil || len(none) != 0 {
			t.Fatalf("an empty store: %v, %v", none, err)
		}
		future := time.Now().Add(time.Hour).UnixNano()
		write(t, w, runPoint("here", "early", base-second), runPoint("here", "a", base+second), runPoint("here", "a", base+2*second),
			runPoint("here", "b", future), runPoint("elsewhere", "c", base+second), simple("hop", "x", 1, base+second))
		got, err := w.Runs(t.Context(), "here", time.Unix(0, base))
		want := map[string]time.Time{"a": time.Unix(0, base+2*second), "b": time.Unix(0, future)}
		if err != nil || !maps.EqualFunc(got, want, time.Time.Equal) {
			t.Errorf("Runs = %v, %v, want %v", got, err, want)
		}
		s.Kill()
		if _, err := w.Runs(t.Context(), "here", time.Unix(0, base)); err == nil || sink.Permanent(err) {
			t.Errorf("without a server: %v", err)
		}
	})
}

// Whatever answers, Runs neither takes it for runs nor fails in another way than by an error.
func TestRunsStrangeAnswers(t *testing.T) {
	for _, tt := range []struct {
		status    int
		body      string
		permanent bool
	}{
		{200, "<html>a portal</html>\"", true}, {200, ",result,table,_time,_value\n,_result,0,yesterday,a\n", true}, {502, "proxy", false}, {429, "slow down", false},
		{302, "", true}, {404, `{"message": "bucket not found"}`, true},
	} {
		for _, org := range []string{"o", ""} {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(tt.status)
				fmt.Fprint(w, tt.body)
			}))
			c := DefaultConfig()
			c.URL, c.Org, c.Bucket = server.URL, org, "a/b"
			w, err := New(c)
			if err != nil {
				t.Fatal(err)
			}
			if runs, err := w.Runs(t.Context(), "here", time.Unix(0, base)); err == nil || sink.Permanent(err) != tt.permanent {
				t.Errorf("%d %q: %v, %v", tt.status, tt.body, runs, err)
			}
			w.Close()
			server.Close()
		}
	}
}

// A server's answer to a query is not cut within a character.
func TestRunsLongMessage(t *testing.T) {
	for pad := range 4 {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprint(w, strings.Repeat("x", pad)+strings.Repeat("漢", 4*maxMessage))
		}))
		c := DefaultConfig()
		c.URL, c.Org, c.Bucket = server.URL, "o", "b"
		w, err := New(c)
		if err != nil {
			t.Fatal(err)
		}
		_, err = w.Runs(t.Context(), "here", time.Unix(0, base))
		w.Close()
		server.Close()
		if e, ok := errors.AsType[*Error](err); !ok || !utf8.ValidString(e.Message) || len(e.Message) < maxMessage-3 {
			t.Errorf("with %d bytes before: %v", pad, err)
		}
	}
}
