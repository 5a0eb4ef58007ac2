package cli

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// messagesKept is the number of messages that are distinguished.
func messagesKept(h *limitedHandler) int {
	h.limit.mu.Lock()
	defer h.limit.mu.Unlock()
	return len(h.limit.messages)
}

// logLinesOf counts the lines of a log with a message, and returns those that say what was left out.
func logLinesOf(out *lockedBuffer) (of map[string]int, leftOut []string) {
	of = map[string]int{}
	for line := range strings.Lines(out.text()) {
		_, line, _ = strings.Cut(strings.TrimSpace(line), " level=")
		level, line, _ := strings.Cut(line, " msg=")
		if rest, ok := strings.CutPrefix(line, `"lines left out" `); ok {
			leftOut = append(leftOut, level+" "+rest)
			continue
		}
		msg, _, _ := strings.Cut(line, " ")
		of[msg]++
	}
	return of, leftOut
}

// Lines of one message are limited in rate, whatever their values and their writer; those of others are not. What was left out is
// logged when the minute is over, and the next minute has its own.
func TestLogLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out lockedBuffer
		log := slog.New(LimitLines(slog.NewTextHandler(&out, nil)))
		of := log.With("sink", "influx").WithGroup("g")
		for i := range 500 {
			log.Warn("refused", "n", i)
			of.Warn("refused", "n", i)
			if i%10 == 0 {
				log.Info("refused")
				log.Error("other", "n", i)
			}
			time.Sleep(100 * time.Millisecond)
		}
		lines, left := logLinesOf(&out)
		if lines["refused"] != logLines+50 || lines["other"] != 50 || len(left) != 0 {
			t.Fatalf("in the first minute: %v, %q", lines, left)
		}
		time.Sleep(logPeriod)
		synctest.Wait()
		if _, left = logLinesOf(&out); len(left) != 1 || left[0] != "WARN message=refused count=940" {
			t.Fatalf("after a minute: %q", left)
		}
		out.mu.Lock()
		out.b.Reset()
		out.mu.Unlock()
		for range logLines + 5 {
			log.Warn("refused")
		}
		FlushLines(log)
		FlushLines(log)
		lines, left = logLinesOf(&out)
		if lines["refused"] != logLines || len(left) != 1 || left[0] != "WARN message=refused count=5" {
			t.Errorf("at the end: %v, %q", lines, left)
		}
		time.Sleep(2 * logPeriod)
		if _, left = logLinesOf(&out); len(left) != 1 {
			t.Errorf("reported twice: %q", left)
		}
	})
}

// Messages that are all different take bounded memory, and no others' lines once they are old.
func TestLogLimitBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out lockedBuffer
		h := LimitLines(slog.NewTextHandler(&out, nil))
		log := slog.New(h)
		for i := range 10 * logMessages {
			log.Info(fmt.Sprint("m", i))
		}
		if n := messagesKept(h.(*limitedHandler)); n > logMessages+1 {
			t.Errorf("%d messages are kept", n)
		}
		lines, _ := logLinesOf(&out)
		if len(lines) != logMessages+logLines {
			t.Errorf("%d lines, want one of each of the first %d messages and %d of all others", len(lines), logMessages, logLines)
		}
		time.Sleep(logPeriod)
		synctest.Wait()
		if _, left := logLinesOf(&out); len(left) != 1 || left[0] != fmt.Sprintf(`INFO message="messages of many kinds" count=%d`, 9*logMessages-logLines) {
			t.Errorf("left out: %q", left)
		}
		log.Info("late")
		if n := messagesKept(h.(*limitedHandler)); n > 2 {
			t.Errorf("%d messages are kept after a minute", n)
		}
		FlushLines(slog.New(slog.DiscardHandler)) // which has nothing to log
	})
}

// lockedBuffer may be read while others write to it.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
