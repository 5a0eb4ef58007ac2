package influx

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/hopscope/hopscope/sink"
)

// Runs implements [sink.Witness]. It asks in Flux. InfluxDB 1.8 is asked in InfluxQL, since Flux is usually switched
// off there, and version 3 in SQL, since it has no Flux. A token that may only write gets a permanent error, which
// needs no action.
func (w *writer) Runs(ctx context.Context, instance string, since time.Time) (map[string]time.Time, error) {
	if w.known() == third {
		return w.runs3(ctx, instance, since)
	}
	r, err := w.runsRequest(ctx, instance, since)
	if err != nil {
		return nil, &sink.PermanentError{Err: err}
	}
	if w.token != "" {
		r.Header.Set("Authorization", "Token "+w.token)
	}
	client := http.Client{Transport: w.transport, Timeout: w.conf.Timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(r)
	if err != nil {
		return nil, &sink.RetryError{Err: &Error{Err: err}}
	}
	defer resp.Body.Close()
	const maxAnswer = 4 << 20
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return nil, &sink.RetryError{Err: &Error{Err: err}}
	}
	if resp.StatusCode != http.StatusOK {
		text := messageOf(body)
		if w.known() == unasked {
			w.askGeneration(ctx, resp.StatusCode, text)
		}
		if w.known() == third {
			return w.runs3(ctx, instance, since)
		}
		return nil, queryError(resp.StatusCode, text)
	}
	runs := map[string]time.Time{}
	read := readRunsCSV
	if w.conf.Org == "" {
		read = readRunsJSON
	}
	if err := read(body, runs); err != nil {
		return nil, &sink.PermanentError{Err: fmt.Errorf("influx: the answer to a query cannot be read: %w", err)}
	}
	return runs, nil
}

// runsRequest asks for the field boot of measurement collector.
func (w *writer) runsRequest(ctx context.Context, instance string, since time.Time) (*http.Request, error) {
	base := strings.TrimSuffix(w.conf.URL, "/")
	if w.conf.Org != "" {
		flux := fmt.Sprintf(`from(bucket: %q) |> range(start: %s, stop: 2200-01-01T00:00:00Z)
  |> filter(fn: (r) => r._measurement == "collector" and r._field == "boot" and r.instance == %q)
  |> group() |> keep(columns: ["_time", "_value"])`, w.conf.Bucket, since.UTC().Format(time.RFC3339Nano), instance)
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, base+"/api/v2/query?"+url.Values{"org": {w.conf.Org}}.Encode(), strings.NewReader(flux))
		if err != nil {
			return nil, err
		}
		r.Header.Set("Content-Type", "application/vnd.flux")
		r.Header.Set("Accept", "application/csv")
		return r, nil
	}
	db, rp, _ := strings.Cut(w.conf.Bucket, "/")
	q := fmt.Sprintf(`SELECT "boot" FROM "collector" WHERE "instance" = '%s' AND time > %d`, strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(instance), since.UnixNano())
	return http.NewRequestWithContext(ctx, http.MethodGet, base+"/query?"+url.Values{"db": {db}, "rp": {rp}, "epoch": {"ns"}, "q": {q}}.Encode(), nil)
}

// saw notes that a run wrote a point.
func saw(runs map[string]time.Time, boot string, at time.Time) {
	if boot != "" && at.After(runs[boot]) {
		runs[boot] = at
	}
}

// readRunsCSV reads the answer to a query in Flux: tables with a header each.
func readRunsCSV(body []byte, runs map[string]time.Time) error {
	r := csv.NewReader(bytes.NewReader(body))
	r.FieldsPerRecord = -1
	timeAt, valueAt := -1, -1
	for {
		row, err := r.Read()
		if errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		header := false
		for i, name := range row {
			switch name {
			case "_time":
				timeAt, header = i, true
			case "_value":
				valueAt = i
			}
		}
		if header || timeAt < 0 || valueAt < 0 || len(row) <= max(timeAt, valueAt) {
			continue
		}
		at, err := time.Parse(time.RFC3339Nano, row[timeAt])
		if err != nil {
			return err
		}
		saw(runs, row[valueAt], at)
	}
}

// readRunsJSON reads the answer of InfluxDB 1.8.
func readRunsJSON(body []byte, runs map[string]time.Time) error {
	var answer struct {
		Results []struct {
			Error  string
			Series []struct{ Values [][]json.RawMessage }
		}
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return err
	}
	for _, result := range answer.Results {
		if result.Error != "" {
			return errors.New(result.Error)
		}
		for _, series := range result.Series {
			for _, row := range series.Values {
				var at int64
				var boot string
				if len(row) != 2 || json.Unmarshal(row[0], &at) != nil || json.Unmarshal(row[1], &boot) != nil {
					return fmt.Errorf("a row is %s", row)
				}
				saw(runs, boot, time.Unix(0, at))
			}
		}
	}
	return nil
}
