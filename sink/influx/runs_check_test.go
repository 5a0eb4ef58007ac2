//go:build check

package influx

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/hopscope/hopscope/internal/servertest"
	"github.com/hopscope/hopscope/sink"
)

// A token that may only write stores points and cannot ask.
func TestRunsWithWriteOnlyToken(t *testing.T) {
	t.Parallel()
	s := servertest.StartInflux(t, servertest.Influx2)
	call := func(method, path string, body, into any) {
		t.Helper()
		b, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		r, err := http.NewRequest(method, s.URL+path, bytes.NewReader(b))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Token "+s.Token)
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if err := json.NewDecoder(resp.Body).Decode(into); err != nil || resp.StatusCode >= 300 {
			t.Fatalf("%s: %s, %v", path, resp.Status, err)
		}
	}
	var buckets struct {
		Buckets []struct{ ID, OrgID string }
	}
	call(http.MethodGet, "/api/v2/buckets?name="+s.Bucket, nil, &buckets)
	var made struct{ Token string }
	call(http.MethodPost, "/api/v2/authorizations", map[string]any{"orgID": buckets.Buckets[0].OrgID, "permissions": []any{
		map[string]any{"action": "write", "resource": map[string]any{"type": "buckets", "id": buckets.Buckets[0].ID}},
	}}, &made)
	w := writerTo(t, s, func(c *Config) { c.TokenFile = tokenFile(t, made.Token) })
	write(t, w, runPoint("here", "a", base+second))
	if runs, err := w.Runs(t.Context(), "here", time.Unix(0, base)); !sink.Permanent(err) || strings.Contains(err.Error(), made.Token) {
		t.Errorf("Runs = %v, %v", runs, err)
	}
}
