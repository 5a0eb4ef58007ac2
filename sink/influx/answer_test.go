package influx

import (
	"net/http"
	"strings"
	"testing"
	"unicode/utf8"

	influxhttp "github.com/influxdata/influxdb-client-go/v2/api/http"
)

// FuzzAnswer gives every answer of a server a verdict. Only a document about points refuses points, never more than
// there are, and its reasons are text.
func FuzzAnswer(f *testing.F) {
	f.Add(400, "2.7.12", []byte(`{"code":"invalid","message":"unable to parse 'x': missing fields"}`), []byte("a b=1 1\nc d=2 2\n"))
	f.Add(400, "", []byte(`{"error":"partial write of line protocol occurred","data":[{"original_line":"c","line_number":2,"error_message":"no field"}]}`), []byte("a b=1 1\nc d=2 2\n"))
	f.Add(400, "", []byte(`{"error":"parsing failed for write_lp endpoint","data":{"original_line":"c","line_number":1,"error_message":"no field"}}`), []byte("c\n"))
	f.Add(422, "", []byte(`{"code":"unprocessable entity","message":"partial write: field type conflict: dropped=3"}`), []byte("a b=1 1\n"))
	f.Add(400, "", []byte(`{"error":"parsing failed for write_lp endpoint","data":{"line_number":1,"error_message":"x`+strings.Repeat("ä", maxMessage)+`"}}`), []byte("c\n"))
	f.Fuzz(func(t *testing.T, status int, version string, body, lines []byte) {
		resp := &http.Response{StatusCode: status, Header: http.Header{"X-Influxdb-Version": {version}}}
		if condemns(resp, body) && (status != 400 && status != 422 || !aboutPoints(string(body)) && utf8.Valid(body) && !strings.Contains(string(body), `\`)) {
			t.Fatalf("%d %q condemns points", status, body)
		}
		he := &influxhttp.Error{StatusCode: status, Message: string(body), Header: resp.Header}
		v, out, _, dropped := classify(he)
		if v == stored || v == refused || dropped < 0 || !utf8.ValidString(out.Message) || len(out.Message) > maxMessage+len("…") {
			t.Fatalf("verdict %v, %d dropped, %q", v, dropped, out.Message)
		}
		list, whole, ok := readPartial(body)
		if !ok {
			return
		}
		if len(list) == 0 || whole && len(list) != 1 {
			t.Fatalf("%d refused lines, all together %t", len(list), whole)
		}
		w, p := &writer{named: list}, &progress{}
		there := strings.Count(strings.TrimSuffix(string(lines), "\n"), "\n") + 1
		if n := w.refuse(p, lines, &Error{Status: status}); n > there || n > len(list) {
			t.Fatalf("%d lines are refused of %d, by %d", n, there, len(list))
		}
		if err := p.refusals.err(); err != nil && utf8.Valid(lines) && !utf8.ValidString(err.Error()) {
			t.Fatalf("%q", err)
		}
	})
}
