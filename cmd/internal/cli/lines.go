package cli

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// How often a line with the same message is written, whatever its values are, and how many messages are distinguished.
// A failing disk or store affects all windows at once; it would fill the journal and hide everything else.
const (
	logLines    = 60
	logPeriod   = time.Minute
	logMessages = 256
)

// limitedHandler drops too frequent lines, and logs their number when the period is over.
type limitedHandler struct {
	slog.Handler
	limit *logLimit
}

// logLimit is the common state of the handlers of one logger.
type logLimit struct {
	out slog.Handler // without the attributes of loggers that were made of the first one

	mu       sync.Mutex
	messages map[logMessage]*logCount
}

type logMessage struct {
	level slog.Level
	text  string
}

type logCount struct {
	since   time.Time
	lines   int // that were written in the period
	leftOut int
	summary *time.Timer // at the end of the period; nil as long as nothing was left out
}

// LimitLines makes a handler that leaves out lines of h that come too often, and counts them.
func LimitLines(h slog.Handler) slog.Handler {
	return &limitedHandler{h, &logLimit{out: h, messages: map[logMessage]*logCount{}}}
}

func (h *limitedHandler) Handle(ctx context.Context, r slog.Record) error {
	if !h.limit.admits(logMessage{r.Level, r.Message}) {
		return nil
	}
	return h.Handler.Handle(ctx, r)
}

func (h *limitedHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &limitedHandler{h.Handler.WithAttrs(attrs), h.limit}
}

func (h *limitedHandler) WithGroup(name string) slog.Handler {
	return &limitedHandler{h.Handler.WithGroup(name), h.limit}
}

// admits counts a line, and reports whether it is written.
func (l *logLimit) admits(m logMessage) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	c := l.messages[m]
	if c == nil && len(l.messages) >= logMessages {
		for k, old := range l.messages {
			if old.leftOut == 0 && now.Sub(old.since) >= logPeriod {
				delete(l.messages, k)
			}
		}
		if len(l.messages) >= logMessages {
			m = logMessage{m.level, "messages of many kinds"}
			c = l.messages[m] // a few more: one for each level
		}
	}
	if c == nil {
		c = &logCount{since: now}
		l.messages[m] = c
	}
	if c.leftOut == 0 && now.Sub(c.since) >= logPeriod {
		c.since, c.lines = now, 0
	}
	if c.lines < logLines {
		c.lines++
		return true
	}
	if c.leftOut++; c.summary == nil {
		c.summary = time.AfterFunc(c.since.Add(logPeriod).Sub(now), func() { l.logLeftOut(m) })
	}
	return false
}

// logLeftOut logs how many lines of a message were left out, and begins its next period.
func (l *logLimit) logLeftOut(m logMessage) {
	l.mu.Lock()
	c := l.messages[m]
	if c == nil || c.leftOut == 0 {
		l.mu.Unlock()
		return
	}
	n := c.leftOut
	c.summary.Stop()
	*c = logCount{since: time.Now()}
	l.mu.Unlock()
	l.emitLeftOut(m, n)
}

func (l *logLimit) emitLeftOut(m logMessage, n int) {
	r := slog.NewRecord(time.Now(), m.level, "lines left out", 0)
	r.AddAttrs(slog.String("message", m.text), slog.Int("count", n))
	_ = l.out.Handle(context.Background(), r) // a logger has no place to report its own error
}

// FlushLines logs what has been left out, at the end of a command.
func FlushLines(log *slog.Logger) {
	h, ok := log.Handler().(*limitedHandler)
	if !ok {
		return
	}
	h.limit.mu.Lock()
	var messages []logMessage
	for m := range h.limit.messages {
		messages = append(messages, m)
	}
	h.limit.mu.Unlock()
	for _, m := range messages {
		h.limit.logLeftOut(m)
	}
}
