package receiver

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hopscope/hopscope/ingest/peer"
	"github.com/hopscope/hopscope/sink"
)

// post sends a document to a server that answers as said, within a time if it does.
func post(t *testing.T, timeout time.Duration, answer http.HandlerFunc) error {
	t.Helper()
	s := httptest.NewServer(answer)
	t.Cleanup(s.Close)
	c := &httpClient{Name: "test", URL: s.URL + "/abracadabra", Secrets: []string{"", "abracadabra"}, Header: http.Header{"X-Test": {"1"}}}
	if err := c.Open(&peer.TLS{}, timeout); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	err := c.post(t.Context(), []byte("document"))
	if err != nil && (strings.Contains(err.Error(), "abra") || len(err.Error()) > 700 || strings.ContainsAny(err.Error(), "\n\x1b")) {
		t.Errorf("the error is %q", err)
	}
	return err
}

// What every answer means: whether the document is refused for good, whether a person has to mend something, and when to
// try again.
func TestAnswers(t *testing.T) {
	const permanent, retry, config = "permanent", "retry", "config"
	for status, want := range map[int]string{
		200: "", 201: "", 202: "", 204: "", 301: config, 302: config, 307: config, 400: permanent, 401: config, 403: config, 404: config, 405: permanent,
		407: config, 408: retry, 410: permanent, 413: permanent, 415: permanent, 422: permanent, 425: retry, 429: retry, 500: retry, 501: config,
		502: retry, 503: retry, 504: retry, 599: retry,
	} {
		got := ""
		err := post(t, time.Minute, func(w http.ResponseWriter, r *http.Request) {
			if b, _ := io.ReadAll(r.Body); string(b) != "document" || r.Method != http.MethodPost || r.Header.Get("X-Test") != "1" {
				t.Errorf("%s %q %v", r.Method, b, r.Header)
			}
			w.Header().Set("Retry-After", "7")
			w.Header().Set("Location", "/elsewhere")
			w.WriteHeader(status)
			if status != http.StatusNoContent {
				fmt.Fprint(w, "no to /abracadabra\x1b[31m\n", strings.Repeat("ü", 100_000))
			}
		})
		if re, ok := errors.AsType[*sink.RetryError](err); ok {
			got = retry
			if re.Config {
				got = config
			}
			if status >= 400 && re.After != 7*time.Second {
				t.Errorf("%d: After = %v", status, re.After)
			}
		} else if sink.Permanent(err) {
			got = permanent
		} else if err != nil {
			t.Errorf("%d: %v", status, err)
		}
		if got != want {
			t.Errorf("%d: %q, %v, want %q", status, got, err, want)
		}
	}
}

func TestNoAnswer(t *testing.T) {
	hang := make(chan struct{})
	defer close(hang)
	for name, answer := range map[string]http.HandlerFunc{
		"hangs up": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"is slow":  func(http.ResponseWriter, *http.Request) { <-hang },
	} {
		if re, ok := errors.AsType[*sink.RetryError](post(t, 200*time.Millisecond, answer)); !ok || re.Config {
			t.Errorf("a server that %s: %v", name, re)
		}
	}
}

// A server that does not take the client's certificate says so while the client writes. That a person has to mend it is known every
// time.
func TestCertificateNotTaken(t *testing.T) {
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a stranger is served") }))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.TLS = &tls.Config{ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: x509.NewCertPool()}
	s.StartTLS()
	t.Cleanup(s.Close)
	key, err := x509.MarshalPKCS8PrivateKey(s.TLS.Certificates[0].PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	conf := &peer.TLS{CAFile: filepath.Join(dir, "cert.pem"), CertFile: filepath.Join(dir, "cert.pem"), KeyFile: filepath.Join(dir, "key.pem")}
	for file, block := range map[string]*pem.Block{conf.CertFile: {Type: "CERTIFICATE", Bytes: s.Certificate().Raw}, conf.KeyFile: {Type: "PRIVATE KEY", Bytes: key}} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c := &httpClient{Name: "test", URL: s.URL}
	if err := c.Open(conf, time.Minute); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	for range 20 {
		err := c.post(t.Context(), []byte("document"))
		if re, ok := errors.AsType[*sink.RetryError](err); !ok || !re.Config || !strings.Contains(err.Error(), "remote error: tls: ") {
			t.Fatalf("%v", err)
		}
	}
}

func TestCutText(t *testing.T) {
	for _, tt := range []struct {
		text string
		n    int
		want string
	}{{"abc", 3, "abc"}, {"abcdef", 5, "ab…"}, {"üüü", 5, "ü…"}, {"üüü", 2, "…"}, {"", 0, ""}} {
		if got := cutText(tt.text, tt.n); got != tt.want {
			t.Errorf("Cut(%q, %d) = %q, want %q", tt.text, tt.n, got, tt.want)
		}
	}
}
