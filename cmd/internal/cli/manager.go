package cli

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Manager is a service manager that started the program, by the protocol of sd_notify(3): systemd or a compatible one.
// The protocol is a datagram now and then, so there is no library for it. A nil Manager receives nothing.
type Manager struct {
	send     func(state string) error
	log      *slog.Logger
	watchdog time.Duration // the program is killed unless it reports within this time that it is alive; 0 for no watchdog
	failed   atomic.Bool   // sending failed before, and was logged
	stop     sync.Once     // sends that the program stops
}

// notifyTimeout bounds how long a message waits for a manager that does not read.
const notifyTimeout = time.Second

// managerOf returns the manager that the environment names, or nil.
func managerOf(getenv func(string) string, log *slog.Logger) *Manager {
	address := getenv("NOTIFY_SOCKET")
	if address == "" {
		return nil
	}
	if !strings.HasPrefix(address, "/") && !strings.HasPrefix(address, "@") { // "@" is an abstract one, for package net too
		log.Warn("the service manager gets no notifications: NOTIFY_SOCKET is neither a path nor an abstract socket", "address", address)
		return nil
	}
	m := &Manager{log: log, send: func(state string) error {
		c, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: address, Net: "unixgram"})
		if err != nil {
			return err
		}
		defer c.Close()
		if err := c.SetWriteDeadline(time.Now().Add(notifyTimeout)); err != nil {
			return err
		}
		_, err = c.Write([]byte(state))
		return err
	}}
	usec, err := strconv.ParseInt(getenv("WATCHDOG_USEC"), 10, 64)
	if pid := getenv("WATCHDOG_PID"); err == nil && usec > 0 && usec < int64(24*time.Hour/time.Microsecond) && (pid == "" || pid == strconv.Itoa(os.Getpid())) {
		m.watchdog = time.Duration(usec) * time.Microsecond
	}
	return m
}

// notify sends a state. A failure is no error: it is logged once.
func (m *Manager) notify(state string) {
	if m == nil {
		return
	}
	if err := m.send(state); err != nil && !m.failed.Swap(true) {
		m.log.Warn("a notification of the service manager failed", "error", err.Error())
	}
}

// Ready reports that the program is ready, after its start or after a reload.
func (m *Manager) Ready() { m.notify("READY=1") }

// Reloading reports that the settings are read again; Ready ends it.
func (m *Manager) Reloading() {
	m.notify(fmt.Sprintf("RELOADING=1\nMONOTONIC_USEC=%d", monotonicMicroseconds()))
}

// Close sends that the program stops, unless that was sent, and returns when it has been. A program that ends at once would otherwise
// be gone before its goroutine sent it. It is safe on a nil Manager.
func (m *Manager) Close() {
	if m != nil {
		m.stop.Do(func() { m.notify("STOPPING=1\nSTATUS=stopping") })
	}
}

// statusEvery is how often a status is sent, unless the watchdog needs it more often.
const statusEvery = 10 * time.Second

// watch feeds the watchdog until ctx ends, twice per required interval, as long as there is progress. Progress is
// growth of beats, which counts what the main loop does at least once in every. It also sends the status.
func (m *Manager) watch(ctx context.Context, every time.Duration, beats func() uint64, status func() string) {
	if m == nil {
		return
	}
	pace := statusEvery
	if m.watchdog > 0 {
		pace = min(pace, m.watchdog/2)
	}
	t := time.NewTicker(pace)
	defer t.Stop()
	p := headway{within: 2*every + pace, at: time.Now(), beats: beats()}
	stuck := false
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-t.C:
			if ctx.Err() != nil {
				return
			}
			state := "STATUS=" + strings.ReplaceAll(status(), "\n", " ")
			was := stuck
			if stuck = !p.alive(now, beats()); !stuck && m.watchdog > 0 {
				state = "WATCHDOG=1\n" + state
			} else if stuck && !was {
				m.log.Error("no progress: the watchdog is not fed", "for", p.within.String())
			}
			m.notify(state)
		}
	}
}

// headway distinguishes a loop that goes on from one that hangs.
type headway struct {
	within time.Duration // in which a beat has to come
	at     time.Time     // of the last look that saw one
	beats  uint64
}

func (p *headway) alive(now time.Time, beats uint64) bool {
	if beats != p.beats {
		p.beats, p.at = beats, now
	}
	return now.Sub(p.at) <= p.within
}

// Supervise reports to the service manager of the environment, if there is one, that a command is ready. From then on
// it reports the status, until ctx ends and the command begins to stop. The caller closes the Manager before the
// program ends. The function beats counts what the main loop does at least once in every; status is one line.
func Supervise(ctx context.Context, log *slog.Logger, every time.Duration, beats func() uint64, status func() string) *Manager {
	m := managerOf(os.Getenv, log)
	if m == nil {
		return nil
	}
	m.Ready()
	go m.watch(ctx, every, beats, status)
	context.AfterFunc(ctx, m.Close)
	return m
}
