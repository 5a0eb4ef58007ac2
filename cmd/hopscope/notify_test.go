package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// notifySocket is the socket of a service manager, at an address as NOTIFY_SOCKET gives it.
func notifySocket(t *testing.T, address string) (next func() string) {
	t.Helper()
	c, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: address, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return func() string {
		t.Helper()
		if err := c.SetReadDeadline(time.Now().Add(2 * time.Minute)); err != nil {
			t.Fatal(err)
		}
		b := make([]byte, 4096)
		n, err := c.Read(b)
		if err != nil {
			t.Fatal(err)
		}
		return string(b[:n])
	}
}

// A collector tells a real socket, with a path or without one, when it is ready, that it lives, that it reads its settings
// again, and that it ends.
func TestNotify(t *testing.T) {
	addresses := []string{filepath.Join(t.TempDir(), "notify")}
	if runtime.GOOS == "linux" {
		addresses = append(addresses, fmt.Sprintf("@hopscope-test-%d", os.Getpid()))
	}
	for _, address := range addresses {
		next := notifySocket(t, address)
		until := func(want string) (all []string) {
			t.Helper()
			for {
				got := next()
				if all = append(all, got); slices.Contains(strings.Split(got, "\n"), want) {
					return all
				}
				if len(all) > 1000 {
					t.Fatalf("no %s in %q", want, all)
				}
			}
		}
		c := program("collect", "--config", writeFile(t, "udp: {listen: [\"127.0.0.1:0\"]}\nweb: {listen: \"\"}\nwindow: 100ms\nlog: {format: json}\n"))
		c.Env = append(c.Env, "NOTIFY_SOCKET="+address, "WATCHDOG_USEC=200000")
		c.Stdout = io.Discard
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		if all := until("READY=1"); len(all) != 1 {
			t.Errorf("before it is ready it says %q", all[:len(all)-1])
		}
		for range 3 {
			all := until("WATCHDOG=1")
			if last := all[len(all)-1]; !strings.Contains(last, "STATUS=0 reports/s") {
				t.Errorf("it lives: %q", last)
			}
		}
		_ = c.Process.Signal(syscall.SIGHUP)
		all := until("RELOADING=1")
		if last := all[len(all)-1]; runtime.GOOS == "linux" && (!strings.Contains(last, "\nMONOTONIC_USEC=") || strings.Contains(last, "USEC=0")) {
			t.Errorf("it reads its settings: %q", last)
		}
		until("READY=1")
		_ = c.Process.Signal(syscall.SIGTERM)
		until("STOPPING=1")
		if got := ended(t, c); got != 0 {
			t.Errorf("exit status %d", got)
		}
	}
}

// The watchdog is fed at twice the pace that it asks for, as long as windows end.
func TestWatchdog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sent []string
		begin := time.Now()
		m := &serviceManager{log: slog.New(slog.DiscardHandler), watchdog: 30 * time.Second, send: func(state string) error {
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
			if s != want && at != 100*time.Second && at != 90*time.Second { // who is first at the same instant is free
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

// What the environment says is taken as it is meant, and a socket that nobody has is told once and no more.
func TestServiceManagerOf(t *testing.T) {
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
	if m := serviceManagerOf(env(), log); m != nil || out.Len() > 0 {
		t.Errorf("without a socket: %+v, %s", m, &out)
	}
	(*serviceManager)(nil).ready() // nobody hears it
	if m := serviceManagerOf(env("NOTIFY_SOCKET=vsock:2:1"), log); m != nil || !strings.Contains(out.String(), "vsock:2:1") {
		t.Errorf("an address of another kind: %+v, %s", m, &out)
	}
	socket := "NOTIFY_SOCKET=" + filepath.Join(t.TempDir(), "nobody")
	for usec, want := range map[string]time.Duration{"30000000": 30 * time.Second, "": 0, "x": 0, "-5": 0, "0": 0, "9223372036854775807": 0} {
		if m := serviceManagerOf(env(socket, "WATCHDOG_USEC="+usec), log); m.watchdog != want {
			t.Errorf("WATCHDOG_USEC=%s: %v", usec, m.watchdog)
		}
	}
	if m := serviceManagerOf(env(socket, "WATCHDOG_USEC=5000000", "WATCHDOG_PID=1"), log); m.watchdog != 0 {
		t.Errorf("the watchdog of another process: %v", m.watchdog)
	}
	if m := serviceManagerOf(env(socket, "WATCHDOG_USEC=5000000", fmt.Sprintf("WATCHDOG_PID=%d", os.Getpid())), log); m.watchdog != 5*time.Second {
		t.Errorf("the watchdog of this process: %v", m.watchdog)
	}
	out.Reset()
	m := serviceManagerOf(env(socket), log)
	m.ready()
	m.stopping()
	if n := strings.Count(out.String(), "is not told"); n != 1 {
		t.Errorf("told %d times: %s", n, &out)
	}
	if err := m.send("READY=1"); !errors.Is(err, syscall.ENOENT) {
		t.Errorf("sending to nobody: %v", err)
	}
}
