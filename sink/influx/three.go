package influx

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	influxhttp "github.com/influxdata/influxdb-client-go/v2/api/http"
)

// InfluxDB 3 says which lines of a request it refuses, and stores the others, at an endpoint of its own. At that of version 2 it answers
// 500 to the same, which says nothing. So a server that gives such an answer is asked once what it is.

// generation is what is known of the server.
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

// askGeneration asks a server that gave an answer which points may be the reason for what it is.
func (w *writer) askGeneration(ctx context.Context, status int) {
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
	_ = json.Unmarshal(body, &doc) // of another form: the header tells
	version := strings.TrimPrefix(resp.Header.Get("X-Influxdb-Version"), "v")
	if version == "" {
		version = strings.TrimPrefix(doc.Version, "v")
	}
	w.generation = older
	if strings.HasPrefix(version, "3.") {
		w.generation = third
	}
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
	r, err := http.NewRequestWithContext(ctx, method, strings.TrimSuffix(w.conf.URL, "/")+path, bytes.NewReader(body))
	if err != nil {
		return nil, nil, err
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
// are passed over. It gives the number of lines that were refused.
func (w *writer) refuse(p *progress, lines []byte, e *Error) (n int) {
	reasons := map[int]string{}
	for _, r := range w.named {
		reasons[r.Line] = r.Message
	}
	for at := 1; len(lines) > 0; at++ {
		var line []byte
		line, lines = nextLine(lines)
		if reason, is := reasons[at]; is {
			p.refusals.add(line, 1, &Error{Status: e.Status, Message: reason[:min(len(reason), maxMessage)]})
			n++
		}
	}
	return n
}
