package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hopscope/hopscope/internal/testkit"
)

// The watchdog is fed at twice the pace that it asks for, as long as windows end.
func TestWatchdog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sent []string
		begin := time.Now()
		m := &Manager{log: slog.New(slog.DiscardHandler), watchdog: 30 * time.Second, send: func(state string) error {
			sent = append(sent, fmt.Sprintf("%v %s", time.Since(begin), state))
			return nil
		}}
		ctx, cancel := context.WithCancel(t.Context())
		var beats atomic.Uint64
		go m.watch(ctx, 10*time.Second, beats.Load, func() string { return "a\nb" })
		for i := range 12 {
			time.Sleep(10 * time.Second)
			if i < 6 {
				beats.Add(1)
			}
		}
		cancel()
		synctest.Wait()
		// The pace is that of the status; the last window ends after a minute, and half a minute more may be its end.
		for i, s := range sent {
			at := time.Duration(i+1) * 10 * time.Second
			want := fmt.Sprintf("%v WATCHDOG=1\nSTATUS=a b", at)
			if at > 100*time.Second {
				want = fmt.Sprintf("%v STATUS=a b", at)
			}
			if s != want && at != 100*time.Second && at != 90*time.Second { // the order at the same instant is free
				t.Errorf("%q, want %q", s, want)
			}
		}
		if len(sent) < 11 {
			t.Errorf("%d messages", len(sent))
		}
	})
}

func TestHeadway(t *testing.T) {
	start := time.Unix(1e9, 0)
	p := headway{within: 20 * time.Second, at: start}
	for _, step := range []struct {
		after time.Duration
		beats uint64
		alive bool
	}{{15, 0, true}, {20, 0, true}, {21, 0, false}, {22, 1, true}, {42, 1, true}, {43, 1, false}, {44, 0, true}} {
		if got := p.alive(start.Add(step.after*time.Second), step.beats); got != step.alive {
			t.Errorf("after %d s with %d beats: %v", step.after, step.beats, got)
		}
	}
}

// What the environment says is taken as it is meant, and a socket that no process has is logged once and no more.
func TestManagerOf(t *testing.T) {
	env := func(pairs ...string) func(string) string {
		return func(key string) string {
			for _, p := range pairs {
				if k, v, _ := strings.Cut(p, "="); k == key {
					return v
				}
			}
			return ""
		}
	}
	var out strings.Builder
	log := slog.New(slog.NewTextHandler(&out, nil))
	if m := managerOf(env(), log); m != nil || out.Len() > 0 {
		t.Errorf("without a socket: %+v, %s", m, &out)
	}
	(*Manager)(nil).Ready() // no manager hears it
	if m := managerOf(env("NOTIFY_SOCKET=vsock:2:1"), log); m != nil || !strings.Contains(out.String(), "vsock:2:1") {
		t.Errorf("an address of another kind: %+v, %s", m, &out)
	}
	socket := "NOTIFY_SOCKET=" + filepath.Join(t.TempDir(), "nobody")
	for usec, want := range map[string]time.Duration{"30000000": 30 * time.Second, "": 0, "x": 0, "-5": 0, "0": 0, "9223372036854775807": 0} {
		if m := managerOf(env(socket, "WATCHDOG_USEC="+usec), log); m.watchdog != want {
			t.Errorf("WATCHDOG_USEC=%s: %v", usec, m.watchdog)
		}
	}
	if m := managerOf(env(socket, "WATCHDOG_USEC=5000000", "WATCHDOG_PID=1"), log); m.watchdog != 0 {
		t.Errorf("the watchdog of another process: %v", m.watchdog)
	}
	if m := managerOf(env(socket, "WATCHDOG_USEC=5000000", fmt.Sprintf("WATCHDOG_PID=%d", os.Getpid())), log); m.watchdog != 5*time.Second {
		t.Errorf("the watchdog of this process: %v", m.watchdog)
	}
	out.Reset()
	m := managerOf(env(socket), log)
	m.Ready()
	m.Close()
	if n := strings.Count(out.String(), "a notification of the service manager failed"); n != 1 {
		t.Errorf("logged %d times: %s", n, &out)
	}
	if err := m.send("READY=1"); !errors.Is(err, syscall.ENOENT) {
		t.Errorf("sending to nobody: %v", err)
	}
}

// A program that ends as soon as its context does has sent that it stops, once.
func TestStopping(t *testing.T) {
	address := &net.UnixAddr{Name: filepath.Join(t.TempDir(), "notify"), Net: "unixgram"}
	c, err := net.ListenUnixgram(address.Net, address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.SetReadDeadline(time.Now().Add(testkit.Patience)); err != nil {
		t.Fatal(err)
	}
	t.Setenv("NOTIFY_SOCKET", address.Name)
	b := make([]byte, 256)
	for range 200 {
		ctx, cancel := context.WithCancel(t.Context())
		m := Supervise(ctx, slog.New(slog.DiscardHandler), time.Second, func() uint64 { return 0 }, func() string { return "" })
		cancel()
		m.Close()
		for _, want := range []string{"READY=1", "STOPPING=1\nSTATUS=stopping"} {
			n, err := c.Read(b)
			if err != nil {
				t.Fatal(err)
			}
			if got := string(b[:n]); got != want {
				t.Fatalf("sent %q, want %q", got, want)
			}
		}
	}
}
