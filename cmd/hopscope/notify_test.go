package main

import (
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hopscope/hopscope/internal/testkit"
)

// A collector notifies a real socket, with or without a path. It sends that it is ready, that it is alive, that it
// reloads its settings, and that it ends.
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
		if err := c.SetReadDeadline(time.Now().Add(testkit.Patience)); err != nil {
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
