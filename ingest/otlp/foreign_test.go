package otlp

import (
	"net"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/ingest"
	"github.com/hopscope/hopscope/internal/testkit"
)

// What comes to a port and is no OTLP is counted, and named once by its address.
func TestForeign(t *testing.T) {
	s, grpcAddr, url := serve(t, func(*Config) {}, func(*ingest.Frame) {})
	httpAddr := strings.Split(strings.TrimPrefix(url, "http://"), "/")[0]
	sent := uint64(0)
	for _, c := range []struct{ addr, bytes, want string }{
		{grpcAddr, "\x16\x03\x01\x00\xa5\x01\x00\x00\xa1\x03\x03\x00", "TLS, where otlp.tls_cert_file is not set"},
		{grpcAddr, "SSH-2.0-OpenSSH_9.2\r\n", "SSH"},
		{grpcAddr, "GET /metrics HTTP/1.1\r\n\r\n", "HTTP/1 to a port for OTLP over gRPC"},
		{httpAddr, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n", "a scrape of Prometheus"},
		{httpAddr, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "HTTP/2 to a port for OTLP over HTTP"},
		{httpAddr, "\x00\x00\x00\x20\x00\x00\x00\x05\x00\x00\x00\x01", "sFlow, which is read over UDP"},
		{httpAddr, "defghijklmnopqrstuvw", "bytes of no protocol"},
	} {
		for range 2 {
			conn, err := net.Dial("tcp", c.addr)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if _, err := conn.Write([]byte(c.bytes)); err != nil {
				t.Fatal(err)
			}
			sent++
			testkit.Until(t, "it is counted", func() bool { return s.Stats().Damaged >= sent })
		}
		if p := s.Inputs()[0].Problem; strings.Count(p, "127.0.0.1 sends "+c.want) != 1 {
			t.Errorf("%q: %q, want it to name %s once", c.bytes, p, c.want)
		}
	}
}
