package influx

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	influxhttp "github.com/influxdata/influxdb-client-go/v2/api/http"

	"github.com/hopscope/hopscope/sink"
)

// InfluxDB 3 names the lines of a request that it refuses, and stores the others, at an endpoint of its own. At that
// of version 2 it answers 500 to the same request, without a reason. A server that gives such an answer is therefore
// asked for its version once.

// generation is the knowledge about the server.
type generation uint8

const (
	unasked generation = iota
	older              // 1.8 or 2.x, or something on the way to it
	third
)

// partialWrite is the document of a refusal. Data is a list of refused lines, or a single one where nothing was stored.
type partialWrite struct {
	Error string          `json:"error"`
	Data  json.RawMessage `json:"data"`
}

type refusedLine struct {
	Line    int    `json:"line_number"` // from 1
	Message string `json:"error_message"`
}

// readPartial reads the document of a refusal of version 3, whatever headers came with it. It is false for any other.
func readPartial(body []byte) (list []refusedLine, whole, ok bool) {
	var doc partialWrite
	if json.Unmarshal(body, &doc) != nil || len(doc.Data) == 0 {
		return nil, false, false
	}
	switch {
	case strings.HasPrefix(doc.Error, "partial write of line protocol"):
		ok = json.Unmarshal(doc.Data, &list) == nil && len(list) > 0
	case strings.HasPrefix(doc.Error, "parsing failed for write_lp"):
		var one refusedLine
		ok, whole = json.Unmarshal(doc.Data, &one) == nil && one.Message != "", true
		list = []refusedLine{one}
	}
	return list, whole, ok
}

// known returns the generation of the server as far as it is known.
func (w *writer) known() generation { return generation(w.generation.Load()) }

// partial3 reports whether a message is one that only version 3 sends, at any address and under any status.
func partial3(message string) bool {
	return strings.Contains(message, "partial write of line protocol occurred")
}

// askGeneration asks a server for its version after a refusal of points or of a query language that the version may
// explain.
func (w *writer) askGeneration(ctx context.Context, status int, message string) {
	if partial3(message) { // whatever proxy answers in its place
		w.generation.Store(uint32(third))
		return
	}
	switch status {
	case http.StatusBadRequest, http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusUnprocessableEntity, http.StatusInternalServerError:
	default:
		return
	}
	resp, body, err := w.request(ctx, http.MethodGet, "/ping", nil)
	if err != nil {
		return
	}
	var doc struct{ Version string }
	_ = json.Unmarshal(body, &doc) // of another form: the header decides
	version := strings.TrimPrefix(resp.Header.Get("X-Influxdb-Version"), "v")
	if version == "" {
		version = strings.TrimPrefix(doc.Version, "v")
	}
	is := older
	if strings.HasPrefix(version, "3.") {
		is = third
	}
	w.generation.Store(uint32(is))
}

// send3 sends lines to version 3. Where it refuses some of them by their numbers, w.named has these.
func (w *writer) send3(ctx context.Context, lines []byte) (verdict, *Error, time.Duration, int) {
	query := url.Values{"db": {w.conf.Bucket}, "precision": {"nanosecond"}, "accept_partial": {"true"}, "no_sync": {"false"}}
	resp, body, err := w.request(ctx, http.MethodPost, "/api/v3/write_lp?"+query.Encode(), lines)
	if err != nil {
		return classify(err)
	}
	if resp.StatusCode == http.StatusNoContent {
		return stored, nil, 0, 0
	}
	message := string(body)
	resp.Header.Del(documentHeader)
	if resp.StatusCode == http.StatusBadRequest || resp.StatusCode == http.StatusUnprocessableEntity {
		if list, whole, ok := readPartial(body); ok {
			resp.Header.Set(documentHeader, documentPoints)
			message = list[0].Message
			if !whole {
				w.named = list
			}
		} else if len(body) == maxAnswer { // a long list of what is wrong: with fewer lines it can be read
			resp.Header.Set(documentHeader, documentCut)
		}
	}
	if resp.StatusCode/100 == 2 {
		resp.StatusCode, message = statusNotInflux, "a success that no InfluxDB gives: "+resp.Status
	}
	return classify(&influxhttp.Error{StatusCode: resp.StatusCode, Message: message, Header: resp.Header})
}

func (w *writer) request(ctx context.Context, method, path string, body []byte) (*http.Response, []byte, error) {
	ctx, cancel := context.WithTimeout(ctx, w.conf.Timeout)
	defer cancel()
	packed := w.conf.Gzip && len(body) > 0
	if packed {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		_, err := z.Write(body)
		if err = errors.Join(err, z.Close()); err != nil {
			return nil, nil, err
		}
		body = b.Bytes()
	}
	r, err := http.NewRequestWithContext(ctx, method, strings.TrimSuffix(w.conf.URL, "/")+path, bytes.NewReader(body))
	if err != nil {
		return nil, nil, err
	}
	if packed {
		r.Header.Set("Content-Encoding", "gzip")
	}
	if w.token != "" {
		r.Header.Set("Authorization", "Token "+w.token)
	}
	resp, err := w.transport.RoundTrip(r)
	if err != nil {
		return nil, nil, err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	return resp, answer, err
}

// refuse takes the lines that the server named out of those that it stored, with its reason for each. Numbers that there are not
// are passed over. It returns the number of lines that were refused.
func (w *writer) refuse(p *progress, lines []byte, e *Error) (n int) {
	reasons := map[int]string{}
	for _, r := range w.named {
		reasons[r.Line] = r.Message
	}
	for at := 1; len(lines) > 0; at++ {
		var line []byte
		line, lines = nextLine(lines)
		if reason, is := reasons[at]; is {
			p.refusals.add(line, 1, &Error{Status: e.Status, Message: strings.ToValidUTF8(reason[:min(len(reason), maxMessage)], "")})
			n++
		}
	}
	return n
}

// runs3 is Runs for version 3, which has no Flux: it asks in SQL. Its body is never packed: the setting holds for writes alone.
func (w *writer) runs3(ctx context.Context, instance string, since time.Time) (map[string]time.Time, error) {
	query := fmt.Sprintf("SELECT boot, max(time) AS time FROM collector WHERE instance = '%s' AND time > '%s' GROUP BY boot",
		strings.ReplaceAll(instance, "'", "''"), since.UTC().Format(time.RFC3339Nano))
	address := "/api/v3/query_sql?" + url.Values{"db": {w.conf.Bucket}, "format": {"json"}, "q": {query}}.Encode()
	resp, body, err := w.request(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, &sink.RetryError{Err: &Error{Err: err}}
	}
	if resp.StatusCode != http.StatusOK {
		text := messageOf(body)
		if resp.StatusCode < 500 && strings.Contains(text, "table") && strings.Contains(text, "not found") {
			return map[string]time.Time{}, nil // nothing was written yet
		}
		return nil, queryError(resp.StatusCode, text)
	}
	var rows []struct{ Boot, Time string }
	if err := json.Unmarshal(body, &rows); err != nil {
		return nil, &sink.PermanentError{Err: fmt.Errorf("influx: the answer to a query cannot be read: %w", err)}
	}
	runs := map[string]time.Time{}
	for _, r := range rows {
		at, err := time.Parse(time.RFC3339Nano, strings.TrimSuffix(r.Time, "Z")+"Z") // times of SQL have no zone
		if err != nil {
			return nil, &sink.PermanentError{Err: fmt.Errorf("influx: the answer to a query cannot be read: %w", err)}
		}
		saw(runs, r.Boot, at)
	}
	return runs, nil
}

// queryError returns an error that is permanent unless the refusal of the query may pass.
func queryError(status int, text string) error {
	e := &Error{Status: status, Message: strings.ToValidUTF8(text[:min(len(text), maxMessage)], "")} // not within a character
	if status >= 500 || status == http.StatusTooManyRequests {
		return &sink.RetryError{Err: e}
	}
	return &sink.PermanentError{Err: e}
}
