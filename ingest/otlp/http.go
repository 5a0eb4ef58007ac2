package otlp

import (
	"compress/gzip"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"mime"
	"net/http"
	"strconv"
	"strings"

	metrics "go.opentelemetry.io/proto/otlp/metrics/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/hopscope/hopscope/ingest"
)

const (
	protobuf = "application/x-protobuf"
	inJSON   = "application/json"
)

// newHTTP makes the server of OTLP over HTTP.
func (s *Source) newHTTP(conf *tls.Config) *http.Server {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/metrics", s.post)
	mux.HandleFunc("/", s.otherRequest)
	return &http.Server{
		Handler: mux, TLSConfig: conf, ReadHeaderTimeout: s.cfg.Timeout, ReadTimeout: s.cfg.Timeout, WriteTimeout: 3 * s.cfg.Timeout,
		IdleTimeout: 6 * s.cfg.Timeout, MaxHeaderBytes: 16 << 10, ErrorLog: log.New(io.Discard, "", 0),
	}
}

// post answers one request.
func (s *Source) post(w http.ResponseWriter, r *http.Request) {
	form, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if form != protobuf && form != inJSON {
		s.refuse(w, inJSON, http.StatusUnsupportedMediaType, fmt.Sprintf("Content-Type: %q is neither %s nor %s", form, protobuf, inJSON))
		return
	}
	free := s.slot()
	if free == nil {
		askForRetry(w, form)
		return
	}
	defer free()
	data, code, err := s.body(w, r)
	if err == nil && form == inJSON {
		if data, err = s.fromJSON(data); err != nil {
			code = http.StatusBadRequest
		}
	}
	if err != nil {
		s.refuse(w, form, code, err.Error())
		return
	}
	answer, err := s.offer(r.Context(), data, addrOf(r.RemoteAddr))
	switch {
	case err != nil:
		askForRetry(w, form)
	case answer.Broken != "":
		respond(w, form, http.StatusBadRequest, answer.Broken)
	case form == inJSON:
		write(w, form, http.StatusOK, inText(answer))
	default:
		write(w, form, http.StatusOK, responseOf(answer))
	}
}

// body reads and unpacks a request, within its bound. An error comes with the status that it is answered with.
func (s *Source) body(w http.ResponseWriter, r *http.Request) (data []byte, code int, err error) {
	most := int64(s.cfg.MaxRequestBytes)
	in := io.Reader(http.MaxBytesReader(w, r.Body, most))
	switch encoding := strings.ToLower(r.Header.Get("Content-Encoding")); encoding {
	case "", "identity":
	case "gzip":
		if in, err = gzip.NewReader(in); err != nil {
			return nil, http.StatusBadRequest, fmt.Errorf("gzip: %w", err)
		}
	default:
		return nil, http.StatusUnsupportedMediaType, fmt.Errorf("Content-Encoding: %q is not read; gzip is", encoding)
	}
	data, err = io.ReadAll(io.LimitReader(in, most+1))
	if _, long := errors.AsType[*http.MaxBytesError](err); long || int64(len(data)) > most {
		return nil, http.StatusRequestEntityTooLarge, fmt.Errorf("longer than otlp.max_request_bytes, %d", most)
	}
	if err != nil {
		return nil, http.StatusBadRequest, err
	}
	return data, 0, nil
}

// fromJSON turns a request into protocol buffers. A request and MetricsData have the same form.
func (s *Source) fromJSON(data []byte) ([]byte, error) {
	s.json.Lock()
	defer s.json.Unlock()
	var m metrics.MetricsData
	if err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(data, &m); err != nil {
		return nil, fmt.Errorf("JSON: %w", err)
	}
	return proto.Marshal(&m)
}

// refuse answers a request that is none.
func (s *Source) refuse(w http.ResponseWriter, form string, code int, why string) {
	if code == http.StatusRequestEntityTooLarge {
		s.long.Add(1)
	} else {
		s.damaged.Add(1)
	}
	respond(w, form, code, why)
}

// askForRetry asks the sender to come again.
func askForRetry(w http.ResponseWriter, form string) {
	w.Header().Set("Retry-After", strconv.Itoa(int(retryAfter.Seconds())))
	respond(w, form, http.StatusServiceUnavailable, errBusy.Error())
}

// respond answers with a google.rpc.Status that has a message alone, in the form of the request.
func respond(w http.ResponseWriter, form string, code int, text string) {
	body := protowire.AppendString(protowire.AppendTag(nil, 2, protowire.BytesType), text)
	if form == inJSON {
		body, _ = json.Marshal(map[string]string{"message": text}) // a map of texts has JSON
	}
	write(w, form, code, body)
}

func write(w http.ResponseWriter, form string, code int, body []byte) {
	w.Header().Set("Content-Type", form)
	w.WriteHeader(code)
	_, _ = w.Write(body) // a sender that has gone comes again
}

// responseOf returns an ExportMetricsServiceResponse, with the refusals if there are any.
func responseOf(a *ingest.Answer) []byte {
	if a.Refused == 0 {
		return []byte{}
	}
	part := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), uint64(a.Refused))
	part = protowire.AppendString(protowire.AppendTag(part, 2, protowire.BytesType), a.Why)
	return protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), part)
}

// inText is the same as JSON.
func inText(a *ingest.Answer) []byte {
	type partial struct {
		Rejected string `json:"rejectedDataPoints"`
		Message  string `json:"errorMessage"`
	}
	var response struct {
		Partial *partial `json:"partialSuccess,omitempty"`
	}
	if a.Refused > 0 {
		response.Partial = &partial{strconv.Itoa(a.Refused), a.Why}
	}
	body, _ := json.Marshal(response) // texts have JSON
	return body
}
