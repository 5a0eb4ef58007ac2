package agent

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/internal/testkit"
	"github.com/hopscope/hopscope/p4/probe"
)

// Connections that send nothing, or do not end their request, take no more than their places, are counted, and keep no
// request out.
func TestSilentConnections(t *testing.T) {
	a := &Agent{}
	a.loss.Store(new(probe.Loss))
	a.epoch.Store(1)
	page, err := ServeStatus("127.0.0.1:0", a, "test", func(h http.Handler) http.Handler { return h })
	if err != nil {
		t.Fatal(err)
	}
	defer page.Close()
	const silent = 10 * (statusConnections + statusReserve)
	for k := range silent {
		c, err := net.Dial("tcp", page.listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if k%2 == 0 {
			_, _ = io.WriteString(c, "GET /status HT") // the page may have closed it for others
		}
	}
	text := ""
	testkit.Until(t, "there is an answer to a check, with those that were closed", func() bool {
		for _, path := range []string{"/readyz", "/status", "/metrics"} {
			res, err := http.Get(page.URL() + path)
			if err != nil {
				t.Fatal(err)
			}
			b, err := io.ReadAll(res.Body)
			res.Body.Close()
			if err != nil || res.StatusCode != http.StatusOK {
				t.Fatalf("%s: %s, %v", path, res.Status, err)
			}
			text = string(b)
		}
		n := a.Stats().StatusClosed
		return n >= silent-statusConnections && strings.Contains(text, fmt.Sprintf("hopscope_agent_status_connections_closed_total %d\n", n))
	})
	if x := statusOf(a, ""); x.Closed < silent-statusConnections {
		t.Errorf("the status says %d", x.Closed)
	}
	if n := page.listener.(interface{ Open() int }).Open(); n > statusConnections+statusReserve {
		t.Errorf("%d connections are open", n)
	}
}
